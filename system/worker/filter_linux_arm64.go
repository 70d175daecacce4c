package worker

// deniedHere is empty: arm64 has none of the older forms.
var deniedHere []uintptr
