// The rows "keep: 1 GB" of docs/SPEED.md need these vectors: without them, keep takes 1.6 to 1.8 times as long.

#include "textflag.h"

DATA half<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA half<>+8(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA half<>+16(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA half<>+24(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL half<>(SB), RODATA|NOPTR, $32

// SETS looks up the grams at 16 positions; a, b, c and d are the offsets of the four bytes of the first gram. It leaves
// in r, for each position, the sets that may contain the gram: the first eight sets in one half of r, the others in the
// other half.
#define SETS(a, b, c, d, r, t0, t1, t2, t3) \
	VBROADCASTI128 a(SI)(AX*1), r  \
	VBROADCASTI128 a(R9)(AX*1), t0 \
	VBROADCASTI128 b(SI)(AX*1), t1 \
	VBROADCASTI128 b(R9)(AX*1), t2 \
	VPSHUFB r, Y0, r               \
	VPSHUFB t0, Y1, t0             \
	VPSHUFB t1, Y2, t1             \
	VPSHUFB t2, Y3, t2             \
	VPAND   r, t0, r               \
	VPAND   t1, t2, t1             \
	VPAND   r, t1, r               \
	VBROADCASTI128 c(SI)(AX*1), t0 \
	VBROADCASTI128 c(R9)(AX*1), t1 \
	VBROADCASTI128 d(SI)(AX*1), t2 \
	VBROADCASTI128 d(R9)(AX*1), t3 \
	VPSHUFB t0, Y4, t0             \
	VPSHUFB t1, Y5, t1             \
	VPSHUFB t2, Y6, t2             \
	VPSHUFB t3, Y7, t3             \
	VPAND   t0, t1, t0             \
	VPAND   t2, t3, t2             \
	VPAND   t0, r, r               \
	VPAND   t2, r, r

// func gramsMask(p *byte, n int, t *nibbles, out *uint64)
//
// The frame holds the upper halves of all bytes, because each is looked up for four places in a gram. The lower halves
// need no preparation: for a byte that is not ASCII the look-up gives 0.
TEXT ·gramsMask(SB), 0, $4160-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ t+16(FP), DI
	MOVQ out+24(FP), R8
	VMOVDQU half<>(SB), Y15
	LEAQ high-4160(SP), R9
	XORQ AX, AX

halves:
	VMOVDQU (SI)(AX*1), Y8
	VPSRLW $4, Y8, Y8
	VPAND Y15, Y8, Y8
	VMOVDQU Y8, (R9)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT  halves
	MOVL (SI)(AX*1), BX // the fourth byte is ignored
	SHRL $4, BX
	ANDL $0x0f0f0f0f, BX
	MOVL BX, (R9)(AX*1)

	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	VMOVDQU 64(DI), Y2
	VMOVDQU 96(DI), Y3
	VMOVDQU 128(DI), Y4
	VMOVDQU 160(DI), Y5
	VMOVDQU 192(DI), Y6
	VMOVDQU 224(DI), Y7
	VPXOR Y15, Y15, Y15
	XORQ AX, AX

loop:
	SETS(0, 1, 2, 3, Y8, Y10, Y11, Y12, Y13)
	SETS(16, 17, 18, 19, Y9, Y10, Y11, Y12, Y13)
	VPERM2I128 $0x20, Y9, Y8, Y10 // the first eight sets of both
	VPERM2I128 $0x31, Y9, Y8, Y11
	VPOR Y10, Y11, Y10
	VPCMPEQB Y15, Y10, Y10
	VPMOVMSKB Y10, DX
	NOTL DX
	MOVL DX, (R8)
	ADDQ $4, R8
	ADDQ $32, AX
	CMPQ AX, CX
	JLT  loop
	VZEROUPPER
	RET
