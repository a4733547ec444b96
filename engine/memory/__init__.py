"""Memory: agents' turns become packets, packets become lessons, and a person throws out the wrong ones."""
