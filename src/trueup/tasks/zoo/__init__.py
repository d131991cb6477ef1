"""Built-in tasks, one file each; TASKS in a file names its variants and the functions that return them."""
