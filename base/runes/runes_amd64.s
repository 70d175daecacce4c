// The rows "keep: 1 GB" of docs/SPEED.md need these vectors.

#include "textflag.h"

DATA newline<>+0(SB)/8, $0x0a0a0a0a0a0a0a0a
GLOBL newline<>(SB), RODATA|NOPTR, $8

// func newlines(p *byte, n int, at *uint64)
TEXT ·newlines(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ at+16(FP), DI
	VPBROADCASTQ newline<>(SB), Y0
	SHRQ $6, CX

step:
	VPCMPEQB (SI), Y0, Y1
	VPCMPEQB 32(SI), Y0, Y2
	VPMOVMSKB Y1, AX
	VPMOVMSKB Y2, BX
	SHLQ $32, BX
	ORQ BX, AX
	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  step
	VZEROUPPER
	RET
