"""The stages of the loop: inputs, commands and outputs of each."""
