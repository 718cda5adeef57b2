"""The language server, in this process with a scripted engine and as a process of its own."""
