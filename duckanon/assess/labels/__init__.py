"""What the labels of a published table stand for, whoever made it."""
