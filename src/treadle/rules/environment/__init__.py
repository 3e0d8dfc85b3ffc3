"""Software environments of rules: what a workflow says of them, and the text that makes and enters them."""
