"""Standing instructions: what people have said or typed once about how answers should always be."""
