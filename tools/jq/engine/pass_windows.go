package engine

const canPassFiles = false
