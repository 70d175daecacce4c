// The rows "keep: 1 GB" of docs/SPEED.md need these vectors.

#include "textflag.h"

// Each byte that is looked for, eight times.
DATA sign<>+0(SB)/8, $0x1b1b1b1b1b1b1b1b
DATA sign<>+8(SB)/8, $0x7070707070707070 // p
DATA sign<>+16(SB)/8, $0x6e6e6e6e6e6e6e6e // n
DATA sign<>+24(SB)/8, $0x6363636363636363 // c
DATA sign<>+32(SB)/8, $0x6c6c6c6c6c6c6c6c // l
DATA sign<>+40(SB)/8, $0x3a3a3a3a3a3a3a3a // :
DATA sign<>+48(SB)/8, $0x2828282828282828 // (
DATA sign<>+56(SB)/8, $0x6d6d6d6d6d6d6d6d // m
GLOBL sign<>(SB), RODATA|NOPTR, $64

// func signs(p *byte, n int) (escape, panic, kernel, bracket uint32)
TEXT ·signs(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	SHRQ $5, CX
	VPBROADCASTQ sign<>+0(SB), Y0
	VPBROADCASTQ sign<>+8(SB), Y1
	VPBROADCASTQ sign<>+16(SB), Y2
	VPBROADCASTQ sign<>+24(SB), Y3
	VPBROADCASTQ sign<>+32(SB), Y4
	VPBROADCASTQ sign<>+40(SB), Y5
	VPBROADCASTQ sign<>+48(SB), Y6
	VPBROADCASTQ sign<>+56(SB), Y7
	VPXOR Y12, Y12, Y12
	VPXOR Y13, Y13, Y13
	VPXOR Y14, Y14, Y14
	VPXOR Y15, Y15, Y15

loop:
	VMOVDQU (SI), Y8
	VMOVDQU 1(SI), Y9
	VPCMPEQB Y8, Y0, Y10
	VPOR Y10, Y12, Y12
	VPCMPEQB Y8, Y1, Y10 // p…
	VPCMPEQB 2(SI), Y2, Y11 // …n…
	VPAND Y11, Y10, Y10
	VPCMPEQB 4(SI), Y3, Y11 // …c
	VPAND Y11, Y10, Y10
	VPOR Y10, Y13, Y13
	VPCMPEQB Y8, Y4, Y10 // l
	VPCMPEQB Y9, Y5, Y11 // :
	VPAND Y11, Y10, Y10
	VPOR Y10, Y14, Y14
	VPCMPEQB Y8, Y6, Y10 // (
	VPCMPEQB Y9, Y7, Y11 // m
	VPCMPEQB Y9, Y3, Y9 // or c
	VPOR Y9, Y11, Y11
	VPAND Y11, Y10, Y10
	VPOR Y10, Y15, Y15
	ADDQ $32, SI
	DECQ CX
	JNZ  loop

	VPMOVMSKB Y12, AX
	VPMOVMSKB Y13, BX
	VPMOVMSKB Y14, CX
	VPMOVMSKB Y15, DX
	VZEROUPPER
	MOVL AX, escape+16(FP)
	MOVL BX, panic+20(FP)
	MOVL CX, kernel+24(FP)
	MOVL DX, bracket+28(FP)
	RET

DATA fold<>+0(SB)/8, $0x2020202020202020
DATA fold<>+8(SB)/8, $0x6161616161616161 // a
DATA fold<>+16(SB)/8, $0x1919191919191919 // z-a
DATA fold<>+24(SB)/8, $0x3030303030303030 // 0
DATA fold<>+32(SB)/8, $0x0909090909090909 // 9-0
DATA fold<>+40(SB)/8, $0x5f5f5f5f5f5f5f5f // _
GLOBL fold<>(SB), RODATA|NOPTR, $48

// func wordBits(p *byte, n int, words, digits *uint64)
TEXT ·wordBits(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ words+16(FP), DI
	MOVQ digits+24(FP), R8
	SHRQ $5, CX
	VPBROADCASTQ fold<>+0(SB), Y0
	VPBROADCASTQ fold<>+8(SB), Y1
	VPBROADCASTQ fold<>+16(SB), Y2
	VPBROADCASTQ fold<>+24(SB), Y3
	VPBROADCASTQ fold<>+32(SB), Y4
	VPBROADCASTQ fold<>+40(SB), Y5

half:
	VMOVDQU (SI), Y8
	VPOR Y8, Y0, Y9
	VPSUBB Y1, Y9, Y9
	VPMINUB Y9, Y2, Y10
	VPCMPEQB Y9, Y10, Y9 // letters
	VPSUBB Y3, Y8, Y10
	VPMINUB Y10, Y4, Y11
	VPCMPEQB Y10, Y11, Y10 // digits
	VPCMPEQB Y8, Y5, Y11
	VPOR Y9, Y8, Y8 // the bytes themselves: those that are not ASCII
	VPOR Y10, Y11, Y11
	VPOR Y8, Y11, Y11
	VPMOVMSKB Y11, AX
	VPMOVMSKB Y10, BX
	MOVL AX, (DI)
	MOVL BX, (R8)
	ADDQ $32, SI
	ADDQ $4, DI
	ADDQ $4, R8
	DECQ CX
	JNZ  half
	VZEROUPPER
	RET
