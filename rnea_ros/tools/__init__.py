"""What a person runs from a shell: the `rnea` command."""
