"""The proof: artifacts are installed where nothing helps them, and made to compute."""
