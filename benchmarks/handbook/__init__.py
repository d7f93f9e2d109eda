"""Three invented handbooks and questions about them."""
