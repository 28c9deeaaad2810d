"""What the product does, one file per loop or noun, over the stores."""
