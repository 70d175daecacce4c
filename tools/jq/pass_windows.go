package jq

const canPassFiles = false
