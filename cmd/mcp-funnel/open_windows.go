package main

// nonblock is 0: opening a file never waits on Windows.
const nonblock = 0
