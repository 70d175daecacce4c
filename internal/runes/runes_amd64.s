#include "textflag.h"

DATA newline<>+0(SB)/8, $0x0a0a0a0a0a0a0a0a
GLOBL newline<>(SB), RODATA|NOPTR, $8

// The least byte that begins a rune, as a signed one.
DATA start<>+0(SB)/8, $0xc0c0c0c0c0c0c0c0
GLOBL start<>(SB), RODATA|NOPTR, $8

// func count(p *byte, n int) (newlines, follow, high int)
TEXT ·count(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	SHRQ $5, CX
	VPBROADCASTQ newline<>(SB), Y0
	VPBROADCASTQ start<>(SB), Y1
	VPXOR Y2, Y2, Y2 // zero
	VPXOR Y3, Y3, Y3 // all bytes, or'ed
	VPXOR Y6, Y6, Y6 // newlines, by eights
	VPXOR Y7, Y7, Y7 // what follows, by eights

round:
	// A byte counts to 255.
	MOVQ $255, DX
	CMPQ CX, DX
	CMOVQLT CX, DX
	SUBQ DX, CX
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5

loop:
	VMOVDQU (SI), Y8
	VPCMPEQB Y0, Y8, Y9
	VPCMPGTB Y8, Y1, Y10
	VPOR Y8, Y3, Y3
	VPSUBB Y9, Y4, Y4
	VPSUBB Y10, Y5, Y5
	ADDQ $32, SI
	DECQ DX
	JNZ  loop

	VPSADBW Y2, Y4, Y4
	VPSADBW Y2, Y5, Y5
	VPADDQ Y4, Y6, Y6
	VPADDQ Y5, Y7, Y7
	TESTQ CX, CX
	JNZ  round

	VEXTRACTI128 $1, Y6, X8
	VPADDQ X8, X6, X6
	VPSRLDQ $8, X6, X8
	VPADDQ X8, X6, X6
	VMOVQ X6, AX
	VEXTRACTI128 $1, Y7, X8
	VPADDQ X8, X7, X7
	VPSRLDQ $8, X7, X8
	VPADDQ X8, X7, X7
	VMOVQ X7, BX
	VPMOVMSKB Y3, DX
	VZEROUPPER
	MOVQ AX, newlines+16(FP)
	MOVQ BX, follow+24(FP)
	MOVLQZX DX, DX
	MOVQ DX, high+32(FP)
	RET

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
