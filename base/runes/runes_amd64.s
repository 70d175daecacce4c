// The rows "keep: …" of docs/SPEED.md need these vectors.

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

// The last bytes that begin no rune of two, three, four and five bytes, the last one that continues a rune, the last ones
// before 0xa0 and 0x90, and first bytes that limit the second one.
DATA bounds<>+0(SB)/8, $0xe08f9fbff4efdfc1
DATA bounds<>+8(SB)/2, $0xf0ed
GLOBL bounds<>(SB), RODATA|NOPTR, $10

// func continued(p *byte) int
TEXT ·continued(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), SI
	VPBROADCASTB bounds<>+0(SB), Y0
	VPBROADCASTB bounds<>+1(SB), Y1
	VPBROADCASTB bounds<>+2(SB), Y2
	VPBROADCASTB bounds<>+3(SB), Y3
	VPBROADCASTB bounds<>+4(SB), Y4
	VPBROADCASTB bounds<>+5(SB), Y5
	VPBROADCASTB bounds<>+6(SB), Y6
	VPBROADCASTB bounds<>+7(SB), Y7
	VPBROADCASTB bounds<>+8(SB), Y8
	VPBROADCASTB bounds<>+9(SB), Y9
	MOVQ $4, CX
	XORQ DX, DX
next:
	VMOVDQU (SI), Y10
	VMOVDQU 1(SI), Y11

	// Y12: first bytes of four, 0xf0 to 0xf4, before a second byte in their limits and before a fourth byte.
	VPCMPGTB Y2, Y10, Y12
	VPCMPGTB Y3, Y10, Y13
	VPANDN Y12, Y13, Y12
	VPCMPGTB Y6, Y11, Y13
	VPCMPEQB Y9, Y10, Y14
	VPANDN Y14, Y13, Y14
	VPANDN Y12, Y14, Y12
	VPCMPEQB Y3, Y10, Y14
	VPAND Y13, Y14, Y14
	VPANDN Y12, Y14, Y12
	VMOVDQU 3(SI), Y13
	VPCMPGTB Y4, Y13, Y13
	VPANDN Y12, Y13, Y12

	// Y13: those of three, 0xe0 to 0xef, in the same way, and those of four, before a third byte.
	VPCMPGTB Y1, Y10, Y13
	VPCMPGTB Y2, Y10, Y14
	VPANDN Y13, Y14, Y13
	VPCMPGTB Y5, Y11, Y14
	VPCMPEQB Y7, Y10, Y15
	VPANDN Y15, Y14, Y15
	VPANDN Y13, Y15, Y13
	VPCMPEQB Y8, Y10, Y15
	VPAND Y14, Y15, Y15
	VPANDN Y13, Y15, Y13
	VPOR Y12, Y13, Y13
	VMOVDQU 2(SI), Y14
	VPCMPGTB Y4, Y14, Y14
	VPANDN Y13, Y14, Y13

	// Y14: those of two, 0xc2 to 0xdf, and all the others, before a second byte.
	VPCMPGTB Y0, Y10, Y14
	VPCMPGTB Y1, Y10, Y15
	VPANDN Y14, Y15, Y14
	VPOR Y13, Y14, Y14
	VPCMPGTB Y4, Y11, Y15
	VPANDN Y14, Y15, Y14
	VPAND Y14, Y13, Y13
	VPAND Y13, Y12, Y12
	VPMOVMSKB Y14, AX
	VPMOVMSKB Y13, BX
	VPMOVMSKB Y12, DI
	POPCNTL AX, AX
	POPCNTL BX, BX
	POPCNTL DI, DI
	ADDQ AX, DX
	ADDQ BX, DX
	ADDQ DI, DX
	ADDQ $32, SI
	DECQ CX
	JNZ  next
	VZEROUPPER
	MOVQ DX, ret+8(FP)
	RET
