package main

// nonblock: opening a file does not wait here.
const nonblock = 0
