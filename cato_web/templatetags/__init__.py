"""What templates of pages use."""
