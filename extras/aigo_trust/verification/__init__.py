"""Results checked: that a file was not altered, and that its numbers follow from what stands in it."""
