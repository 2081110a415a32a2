#!/usr/bin/env python3
"""Every form of every instruction, as the PTX manual lists them: is taken, or refused by name. And every form with a
modifier or an operand that does not belong to it: must be refused. So nothing that an instruction says is passed over.

The table below is written from the manual alone. `{a|b}` may be there, `<a|b>` must be. Operands: h, r, d, q are
registers of 16, 32, 64 and 128 bits, f and F floats of 32 and 64, p a predicate, i a constant, A an address in any
space, S in shared memory; (4r) a list of 4, p|p a pair. What is in NOT_DONE is refused and known to be.
    tests/ptx/forms.py [--all] [--compile]   every form with strange modifiers; the C compiler reads what is written
"""
import itertools
import os
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
ORD = "{.weak|.relaxed<.cta|.cluster|.gpu|.sys>|.acquire<.cta|.gpu|.sys>|.volatile}"
STO = "{.weak|.relaxed<.cta|.cluster|.gpu|.sys>|.release<.cta|.gpu|.sys>|.volatile}"
SEM = "{.relaxed|.acquire|.release|.acq_rel}{.cta|.cluster|.gpu|.sys}"
FORMS = """
add.<u16|s16> h,h,h
add.<u32|s32> r,r,r
add.<u64|s64> d,d,d
add.<u16x2|s16x2> r,r,r
add.sat.s32 r,r,r
<add|sub>.cc.<u32|s32> r,r,r
<add|sub>.cc.<u64|s64> d,d,d
<addc|subc>{.cc}.<u32|s32> r,r,r
<addc|subc>{.cc}.<u64|s64> d,d,d
sub.<u16|s16> h,h,h
sub{.sat}.s32 r,r,r
sub.u32 r,r,r
sub.<u64|s64> d,d,d
mul.<hi|lo>.<u16|s16> h,h,h
mul.<hi|lo>.<u32|s32> r,r,r
mul.<hi|lo>.<u64|s64> d,d,d
mul.wide.<u16|s16> r,h,h
mul.wide.<u32|s32> d,r,r
mad.<hi|lo>.<u16|s16> h,h,h,h
mad.<hi|lo>.<u32|s32> r,r,r,r
mad.<hi|lo>.<u64|s64> d,d,d,d
mad.wide.<u16|s16> r,h,h,r
mad.wide.<u32|s32> d,r,r,d
mad.hi.sat.s32 r,r,r,r
mad.<hi|lo>.cc.<u32|s32> r,r,r,r
mad.<hi|lo>.cc.<u64|s64> d,d,d,d
madc.<hi|lo>{.cc}.<u32|s32> r,r,r,r
madc.<hi|lo>{.cc}.<u64|s64> d,d,d,d
mul24.<hi|lo>.<u32|s32> r,r,r
mad24.<hi|lo>.<u32|s32> r,r,r,r
mad24.hi.sat.s32 r,r,r,r
sad.<u16|s16> h,h,h,h
sad.<u32|s32> r,r,r,r
sad.<u64|s64> d,d,d,d
<div|rem>.<u16|s16> h,h,h
<div|rem>.<u32|s32> r,r,r
<div|rem>.<u64|s64> d,d,d
<abs|neg>.s16 h,h
<abs|neg>.s32 r,r
<abs|neg>.s64 d,d
<min|max>.<u16|s16> h,h,h
<min|max>.<u32|s32> r,r,r
<min|max>.relu.s32 r,r,r
<min|max>.<u64|s64> d,d,d
<min|max>.u16x2 r,r,r
<min|max>{.relu}.s16x2 r,r,r
popc.b32 r,r
popc.b64 r,d
clz.b32 r,r
clz.b64 r,d
bfind{.shiftamt}.<u32|s32> r,r
bfind{.shiftamt}.<u64|s64> r,d
fns.b32 r,r,r,r
brev.b32 r,r
brev.b64 d,d
bfe.<u32|s32> r,r,r,r
bfe.<u64|s64> d,d,r,r
bfi.b32 r,r,r,r,r
bfi.b64 d,d,d,r,r
szext.<clamp|wrap>.<u32|s32> r,r,r
bmsk.<clamp|wrap>.b32 r,r,r
dp4a.<u32|s32>.<u32|s32> r,r,r,r
dp2a.<lo|hi>.<u32|s32>.<u32|s32> r,r,r,r
testp.<finite|infinite|number|notanumber|normal|subnormal>.f32 p,f
testp.<finite|infinite|number|notanumber|normal|subnormal>.f64 p,F
copysign.f32 f,f,f
copysign.f64 F,F,F
<add|sub|mul>{.rn|.rz|.rm|.rp}{.ftz}{.sat}.f32 f,f,f
<add|sub|mul>{.rn|.rz|.rm|.rp}{.ftz}.f32x2 d,d,d
<add|sub|mul>{.rn|.rz|.rm|.rp}.f64 F,F,F
<add|sub|mul>{.rn}{.ftz}{.sat}.f16 h,h,h
<add|sub|mul>{.rn}{.ftz}{.sat}.f16x2 r,r,r
<add|sub|mul>{.rn}.bf16 h,h,h
<add|sub|mul>{.rn}.bf16x2 r,r,r
fma<.rn|.rz|.rm|.rp>{.ftz}{.sat}.f32 f,f,f,f
fma<.rn|.rz|.rm|.rp>{.ftz}.f32x2 d,d,d,d
fma<.rn|.rz|.rm|.rp>.f64 F,F,F,F
fma.rn{.ftz}{.sat}.f16 h,h,h,h
fma.rn{.ftz}{.sat}.f16x2 r,r,r,r
fma.rn{.ftz}.relu.f16 h,h,h,h
fma.rn{.ftz}.relu.f16x2 r,r,r,r
fma.rn{.relu}.bf16 h,h,h,h
fma.rn{.relu}.bf16x2 r,r,r,r
fma.rn.oob{.relu}.f16 h,h,h,h
mad<.rn|.rz|.rm|.rp>{.ftz}{.sat}.f32 f,f,f,f
mad<.rn|.rz|.rm|.rp>.f64 F,F,F,F
div.approx{.ftz}.f32 f,f,f
div.full{.ftz}.f32 f,f,f
div<.rn|.rz|.rm|.rp>{.ftz}.f32 f,f,f
div<.rn|.rz|.rm|.rp>.f64 F,F,F
<abs|neg>{.ftz}.f32 f,f
<abs|neg>.f64 F,F
<abs|neg>{.ftz}.f16 h,h
<abs|neg>{.ftz}.f16x2 r,r
<abs|neg>.bf16 h,h
<abs|neg>.bf16x2 r,r
<min|max>{.ftz}{.NaN}{.xorsign.abs}.f32 f,f,f
<min|max>{.ftz}{.NaN}.f32 f,f,f,f
<min|max>.f64 F,F,F
<min|max>{.ftz}{.NaN}{.xorsign.abs}.f16 h,h,h
<min|max>{.ftz}{.NaN}{.xorsign.abs}.f16x2 r,r,r
<min|max>{.NaN}{.xorsign.abs}.bf16 h,h,h
<min|max>{.NaN}{.xorsign.abs}.bf16x2 r,r,r
rcp.approx{.ftz}.f32 f,f
rcp<.rn|.rz|.rm|.rp>{.ftz}.f32 f,f
rcp<.rn|.rz|.rm|.rp>.f64 F,F
rcp.approx.ftz.f64 F,F
sqrt.approx{.ftz}.f32 f,f
sqrt<.rn|.rz|.rm|.rp>{.ftz}.f32 f,f
sqrt<.rn|.rz|.rm|.rp>.f64 F,F
rsqrt.approx{.ftz}.f32 f,f
rsqrt.approx{.ftz}.f64 F,F
<sin|cos|lg2|ex2>.approx{.ftz}.f32 f,f
tanh.approx.f32 f,f
ex2.approx.f16 h,h
ex2.approx.f16x2 r,r
ex2.approx.ftz.bf16 h,h
ex2.approx.ftz.bf16x2 r,r
tanh.approx.<f16|bf16> h,h
tanh.approx.<f16x2|bf16x2> r,r
set.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.<u32|s32>.u32 r,r,r
set.<eq|ne|lt|le|gt|ge>.<u32|s32>.s32 r,r,r
set.<eq|ne|lt|le|gt|ge>.<and|or|xor>.<u32|s32>.s32 r,r,r,p
set.<eq|ne>.u32.b32 r,r,r
set.<eq|ne|lt|le|gt|ge>.u32.u16 r,h,h
set.<eq|ne|lt|le|gt|ge>.f32.s64 f,d,d
set.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>{.ftz}.<u32|s32>.f32 r,f,f
set.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>{.ftz}.f32.f32 f,f,f
set.<eq|ltu>.u32.f64 r,F,F
set.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>{.ftz}.f16.f16 h,h,h
set.<eq|lt|geu>{.ftz}.f16x2.f16x2 r,r,r
set.<eq|lt|geu>{.ftz}.<u32|s32>.f16x2 r,r,r
set.<eq|lt|geu>{.ftz}.<u16|s16>.f16 h,h,h
set.<eq|lt|geu>{.ftz}.u32.f16 r,h,h
set.<eq|lt|geu>.bf16.bf16 h,h,h
set.<eq|lt|geu>.bf16x2.bf16x2 r,r,r
set.<eq|lt|geu>.<u32|s32>.bf16x2 r,r,r
setp.<eq|ne>.b16 p,h,h
setp.<eq|ne>.b32 p,r,r
setp.<eq|ne>.b64 p,d,d
setp.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.u16 p,h,h
setp.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.u32 p|p,r,r
setp.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.u64 p,d,d
setp.<eq|ne|lt|le|gt|ge>.s16 p,h,h
setp.<eq|ne|lt|le|gt|ge>.s32 p,r,r
setp.<eq|ne|lt|le|gt|ge>.<and|or|xor>.s32 p|p,r,r,p
setp.<eq|ne|lt|le|gt|ge>.s64 p,d,d
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>{.ftz}.f32 p,f,f
setp.<lt|nan>.<and|or|xor>{.ftz}.f32 p,f,f,p
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>.f64 p,F,F
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>{.ftz}.f16 p,h,h
setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>{.ftz}.f16x2 p|p,r,r
setp.<eq|lt|num>.bf16 p,h,h
setp.<eq|lt|num>.bf16x2 p|p,r,r
selp.<b16|u16|s16> h,h,h,p
selp.<b32|u32|s32> r,r,r,p
selp.<b64|u64|s64> d,d,d,p
selp.f32 f,f,f,p
selp.f64 F,F,F,p
slct.<b16|u16|s16>.s32 h,h,h,r
slct.<b32|u32|s32>.s32 r,r,r,r
slct.<b64|u64|s64>.s32 d,d,d,r
slct{.ftz}.<b32|u32|s32>.f32 r,r,r,f
slct.f32.s32 f,f,f,r
slct{.ftz}.f64.f32 F,F,F,f
<and|or|xor>.pred p,p,p
<and|or|xor>.b16 h,h,h
<and|or|xor>.b32 r,r,r
<and|or|xor>.b64 d,d,d
not.pred p,p
<not|cnot>.b16 h,h
<not|cnot>.b32 r,r
<not|cnot>.b64 d,d
lop3.b32 r,r,r,r,i
lop3.<and|or|xor>.b32 r|p,r,r,r,i,p
shf.<l|r>.<clamp|wrap>.b32 r,r,r,r
shl.b16 h,h,r
shl.b32 r,r,r
shl.b64 d,d,r
shr.<b16|u16|s16> h,h,r
shr.<b32|u32|s32> r,r,r
shr.<b64|u64|s64> d,d,r
prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16} r,r,r,r
mov.pred p,p
mov.<b16|u16|s16> h,h
mov.<b32|u32|s32> r,r
mov.<b64|u64|s64> d,d
mov.f32 f,f
mov.f64 F,F
mov.b32 r,(2h)
mov.b64 d,(2r)
mov.b64 d,(4h)
mov.b32 (2h),r
mov.b64 (2r),d
mov.b128 q,(2d)
cvt.<u8|s8|u16|s16>.<u16|s16> h,h
cvt.sat.<u8|s8|u16|s16>.<u8|s8|u16|s16> h,h
cvt{.sat}.<u8|s8|u16|s16>.<u32|s32> h,r
cvt{.sat}.<u8|s8|u16|s16>.<u64|s64> h,d
cvt{.sat}.<u32|s32>.<u32|s32> r,r
cvt{.sat}.<u32|s32>.<u8|s8|u16|s16> r,h
cvt{.sat}.<u64|s64>.<u8|s8|u16|s16> d,h
cvt{.sat}.<u64|s64>.<u32|s32> d,r
cvt{.sat}.<u32|s32>.<u64|s64> r,d
cvt<.rni|.rzi|.rmi|.rpi>{.ftz}{.sat}.<u8|s8|u16|s16>.f32 h,f
cvt<.rni|.rzi|.rmi|.rpi>{.ftz}{.sat}.<u32|s32>.f32 r,f
cvt<.rni|.rzi|.rmi|.rpi>{.ftz}{.sat}.<u64|s64>.f32 d,f
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.<u32|s32>.f64 r,F
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.<u64|s64>.f64 d,F
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.<u16|s16>.<f16|bf16> h,h
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.<u32|s32>.<f16|bf16> r,h
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.<u64|s64>.<f16|bf16> d,h
cvt<.rn|.rz|.rm|.rp>{.sat}.f32.<u8|s8|u16|s16> f,h
cvt<.rn|.rz|.rm|.rp>{.sat}.f32.<u32|s32> f,r
cvt<.rn|.rz|.rm|.rp>{.sat}.f32.<u64|s64> f,d
cvt<.rn|.rz|.rm|.rp>{.sat}.f64.<u32|s32> F,r
cvt<.rn|.rz|.rm|.rp>{.sat}.f64.<u64|s64> F,d
cvt<.rn|.rz|.rm|.rp>{.sat}.<f16|bf16>.<u8|s8|u16|s16> h,h
cvt<.rn|.rz|.rm|.rp>{.sat}.<f16|bf16>.<u32|s32> h,r
cvt<.rn|.rz|.rm|.rp>{.sat}.<f16|bf16>.<u64|s64> h,d
cvt{.ftz}{.sat}.f32.f32 f,f
cvt<.rni|.rzi|.rmi|.rpi>{.ftz}{.sat}.f32.f32 f,f
cvt{.sat}.f64.f64 F,F
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.f64.f64 F,F
cvt{.sat}.f16.f16 h,h
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.f16.f16 h,h
cvt{.sat}.bf16.bf16 h,h
cvt<.rni|.rzi|.rmi|.rpi>{.sat}.bf16.bf16 h,h
cvt{.ftz}{.sat}.f64.f32 F,f
cvt<.rn|.rz|.rm|.rp>{.ftz}{.sat}.f32.f64 f,F
cvt{.ftz}{.sat}.f32.<f16|bf16> f,h
cvt{.sat}.f64.<f16|bf16> F,h
cvt<.rn|.rz|.rm|.rp>{.ftz}{.sat}{.relu}{.satfinite}.<f16|bf16>.f32 h,f
cvt<.rn|.rz|.rm|.rp>{.sat}{.relu}{.satfinite}.<f16|bf16>.f64 h,F
cvt<.rn|.rz|.rm|.rp>{.sat}{.relu}{.satfinite}.f16.bf16 h,h
cvt<.rn|.rz|.rm|.rp>{.sat}{.relu}{.satfinite}.bf16.f16 h,h
cvt<.rn|.rz>{.relu}{.satfinite}.<f16x2|bf16x2>.f32 r,f,f
cvt.rna{.satfinite}.tf32.f32 r,f
cvt<.rn|.rz>{.satfinite}{.relu}.tf32.f32 r,f
cvt.rn.satfinite{.relu}.<e4m3x2|e5m2x2>.f32 h,f,f
cvt.rn.satfinite{.relu}.<e4m3x2|e5m2x2>.f16x2 h,r
cvt.rn{.relu}.f16x2.<e4m3x2|e5m2x2> r,h
cvta.<global|local|shared|const|param>.u64 d,d
cvta.to.<global|local|shared|const|param>.u64 d,d
isspacep.<const|global|local|shared|shared::cta|shared::cluster|param> p,d
ld@ORD{.global|.shared|.shared::cta|.local}.<u8|s8|b8> h,A
ld@ORD{.global|.shared|.local}.<u16|s16|b16> h,A
ld@ORD{.global|.shared|.local}.<u32|s32|b32> r,A
ld{.const|.param}.<u32|s32|b32> r,A
ld@ORD{.global|.shared|.local}.<u64|s64|b64> d,A
ld{.global|.shared}.f32 f,A
ld{.global|.shared}.f64 F,A
ld{.global|.shared|.const}.v2.<b8|u8> (2h),A
ld{.global|.shared|.const}.v4.<u8|s8> (4h),A
ld{.global|.shared|.const}.v2.<b16|u16> (2h),A
ld{.global|.shared|.const}.v4.<b16|u16> (4h),A
ld{.global|.shared|.const}.v2.<b32|u32> (2r),A
ld{.global|.shared|.const}.v4.<b32|u32> (4r),A
ld{.global|.shared}.v2.<b64|u64> (2d),A
ld{.global|.shared}.v2.f32 (2f),A
ld{.global|.shared}.v4.f32 (4f),A
ld{.global|.shared}.v2.f64 (2F),A
ld.global.v8.b32 (8r),A
ld.global.v4.b64 (4d),A
ld.global{.ca|.cg|.cs|.lu|.cv}.f32 f,A
ld.global.nc{.L1::no_allocate|.L1::evict_last|.L1::evict_first}{.L2::64B|.L2::128B|.L2::256B}.v4.f32 (4f),A
ld.global.nc.L2::cache_hint.u32 r,A,d
ldu.global.<u32|b32> r,A
st@STO{.global|.shared|.shared::cta|.local}.<u8|s8|b8> A,h
st@STO{.global|.shared|.local}.<u16|s16|b16> A,h
st@STO{.global|.shared|.local}.<u32|s32|b32> A,r
st.param.b32 A,r
st@STO{.global|.shared|.local}.<u64|s64|b64> A,d
st{.global|.shared}.f32 A,f
st{.global|.shared}.f64 A,F
st{.global|.shared}.v2.<b32|u32> A,(2r)
st{.global|.shared}.v4.<b32|u32> A,(4r)
st{.global|.shared}.v4.f32 A,(4f)
st{.global|.shared}.v2.<b16|u16> A,(2h)
st{.global|.shared}.v4.<b8|u8> A,(4h)
st{.global|.shared}.v2.b64 A,(2d)
st.global{.wb|.cg|.cs|.wt}.f32 A,f
st.global.L1::no_allocate.v4.f32 A,(4f)
st.global.L2::cache_hint.u32 A,r,d
atom@SEM{.global|.shared}.add.<u32|s32> r,A,r
atom@SEM{.global|.shared}.add.u64 d,A,d
atom{.global|.shared}.add.s64 d,A,d
atom@SEM{.global|.shared}.add.f32 f,A,f
atom{.global|.shared}.add.f64 F,A,F
atom@SEM{.global|.shared}.add.noftz.<f16|bf16> h,A,h
atom{.global|.shared}.add.noftz.<f16x2|bf16x2> r,A,r
atom{.global|.shared}.<min|max>.<u32|s32> r,A,r
atom{.global|.shared}.<min|max>.<u64|s64> d,A,d
atom{.global|.shared}.<and|or|xor|exch>.b32 r,A,r
atom{.global|.shared}.<and|or|xor|exch>.b64 d,A,d
atom{.global|.shared}.<inc|dec>.u32 r,A,r
atom@SEM{.global|.shared}.cas.b16 h,A,h,h
atom@SEM{.global|.shared}.cas.b32 r,A,r,r
atom@SEM{.global|.shared}.cas.b64 d,A,d,d
atom{.global}.add.v2.f32 (2f),A,(2f)
atom{.global}.add.v4.f32 (4f),A,(4f)
atom{.global}.<add|min|max>.noftz.v2.<f16|bf16> (2h),A,(2h)
atom{.global}.<add|min|max>.noftz.v8.<f16|bf16> (8h),A,(8h)
atom{.global}.<add|min|max>.noftz.v4.<f16x2|bf16x2> (4r),A,(4r)
atom.global.add.L2::cache_hint.u32 r,A,r,d
atom.global.<cas>.b128 q,A,q,q
red@SEM{.global|.shared}.add.<u32|s32> A,r
red{.global|.shared}.add.<u64|s64> A,d
red@SEM{.global|.shared}.add.f32 A,f
red{.global|.shared}.add.f64 A,F
red{.global|.shared}.add.noftz.<f16|bf16> A,h
red{.global|.shared}.add.noftz.<f16x2|bf16x2> A,r
red{.global|.shared}.<min|max>.<u32|s32> A,r
red{.global|.shared}.<min|max>.<u64|s64> A,d
red{.global|.shared}.<and|or|xor>.b32 A,r
red{.global|.shared}.<and|or|xor>.b64 A,d
red{.global|.shared}.<inc|dec>.u32 A,r
red{.global}.add.v4.f32 A,(4f)
red{.global}.<add|min|max>.noftz.v4.<f16x2|bf16x2> A,(4r)
prefetch.global.<L1|L2> A
discard.global.L2 A,i128
applypriority.global.L2::evict_normal A,i128
fence<.sc|.acq_rel|.acquire|.release>.<cta|cluster|gpu|sys>
membar.<cta|gl|sys>
fence.proxy.<alias|async|async.global|async.shared::cta>
fence.mbarrier_init.release.cluster
cp.async.ca.shared{::cta}.global{.L2::64B|.L2::128B|.L2::256B} S,A,<i4|i8|i16>{,r|,p}
cp.async.cg.shared{::cta}.global{.L2::128B} S,A,i16{,r|,p}
cp.async.cg.shared.global.L2::cache_hint S,A,i16,d
cp.async.<commit_group|wait_all>
cp.async.wait_group i
cp.async.mbarrier.arrive{.noinc}.shared{::cta}.b64 S
cp.async.bulk.<shared::cluster|shared::cta>.global.mbarrier::complete_tx::bytes S,A,r,S
cp.async.bulk.global.shared::cta.bulk_group A,S,r
cp.async.bulk.commit_group
cp.async.bulk.wait_group{.read} i
mbarrier.init{.shared|.shared::cta}.b64 S,r
mbarrier.inval{.shared|.shared::cta}.b64 S
mbarrier.<arrive|arrive_drop>{.release.cta}{.shared|.shared::cta}.b64 d,S{,r}
mbarrier.<arrive|arrive_drop>.noComplete{.release.cta}{.shared|.shared::cta}.b64 d,S,r
mbarrier.<arrive|arrive_drop>.expect_tx{.release.cta}.shared{::cta}.b64 d,S,r
mbarrier.expect_tx{.relaxed.cta}.shared.b64 S,r
mbarrier.complete_tx{.relaxed.cta}.shared.b64 S,r
mbarrier.test_wait{.acquire.cta}{.shared|.shared::cta}.b64 p,S,d
mbarrier.test_wait.parity{.acquire.cta}{.shared|.shared::cta}.b64 p,S,r
mbarrier.try_wait{.acquire.cta}{.shared|.shared::cta}.b64 p,S,d{,r}
mbarrier.try_wait.parity{.acquire.cta}{.shared|.shared::cta}.b64 p,S,r{,r}
mbarrier.pending_count.b64 r,d
<bar|barrier>{.cta}.sync i
<bar|barrier>{.cta}.sync i,r
<bar|barrier>{.cta}.arrive i,r
<bar|barrier>{.cta}.red.popc.u32 r,i,p
<bar|barrier>{.cta}.red.<and|or>.pred p,i,p
barrier{.cta}.red.<and|or>.aligned.pred p,i,r,p
barrier{.cta}.sync.aligned i{,r}
barrier{.cta}.red.popc.aligned.u32 r,i,p
barrier{.cta}.arrive.aligned i,r
bar.warp.sync r
barrier.cluster.arrive{.release|.relaxed}{.aligned}
barrier.cluster.wait{.acquire}{.aligned}
shfl.sync.<up|down|bfly|idx>.b32 r|p,r,r,r,r
vote.sync.<all|any|uni>.pred p,p,r
vote.sync.ballot.b32 r,p,r
match.any.sync.b32 r,r,r
match.any.sync.b64 r,d,r
match.all.sync.b32 r|p,r,r
match.all.sync.b64 r|p,d,r
activemask.b32 r
redux.sync.<add|min|max>.<u32|s32> r,r,r
redux.sync.<and|or|xor>.b32 r,r,r
redux.sync.<min|max>{.abs}{.NaN}.f32 f,f,r
elect.sync r|p,r
ldmatrix.sync.aligned.m8n8.x1{.trans}{.shared|.shared::cta}.b16 (1r),S
ldmatrix.sync.aligned.m8n8.x2{.trans}{.shared|.shared::cta}.b16 (2r),S
ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared|.shared::cta}.b16 (4r),S
stmatrix.sync.aligned.m8n8.x1{.trans}{.shared|.shared::cta}.b16 S,(1r)
stmatrix.sync.aligned.m8n8.x4{.trans}{.shared|.shared::cta}.b16 S,(4r)
movmatrix.sync.aligned.m8n8.trans.b16 r,r
mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 (2r),(2r),(1r),(2r)
mma.sync.aligned.m16n8k8.row.col.f32.<f16.f16|bf16.bf16>.f32 (4f),(2r),(1r),(4f)
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 (2r),(4r),(2r),(2r)
mma.sync.aligned.m16n8k16.row.col.f32.<f16.f16|bf16.bf16>.f32 (4f),(4r),(2r),(4f)
mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 (4f),(2r),(1r),(4f)
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 (4f),(4r),(2r),(4f)
mma.sync.aligned.m8n8k4.row.col{.rn}.f64.f64.f64.f64 (2F),(1F),(1F),(2F)
mma.sync.aligned.m16n8k4.row.col{.rn}.f64.f64.f64.f64 (4F),(2F),(1F),(4F)
mma.sync.aligned.m16n8k8.row.col{.rn}.f64.f64.f64.f64 (4F),(4F),(2F),(4F)
mma.sync.aligned.m16n8k16.row.col{.rn}.f64.f64.f64.f64 (4F),(8F),(4F),(4F)
mma.sync.aligned.m8n8k16.row.col{.satfinite}.s32.<u8|s8>.<u8|s8>.s32 (2r),(1r),(1r),(2r)
mma.sync.aligned.m16n8k16.row.col{.satfinite}.s32.<u8|s8>.<u8|s8>.s32 (4r),(2r),(1r),(4r)
mma.sync.aligned.m16n8k32.row.col{.satfinite}.s32.<u8|s8>.<u8|s8>.s32 (4r),(4r),(2r),(4r)
mma.sync.aligned.m16n8k32.row.col.f32.<e4m3|e5m2>.<e4m3|e5m2>.f32 (4f),(4r),(2r),(4f)
mma.sync.aligned.m16n8k32.row.col{.satfinite}.s32.<u4|s4>.<u4|s4>.s32 (4r),(2r),(1r),(4r)
mma.sync.aligned.m16n8k64.row.col{.satfinite}.s32.<u4|s4>.<u4|s4>.s32 (4r),(4r),(2r),(4r)
mma.sync.aligned.m8n8k32.row.col{.satfinite}.s32.<u4|s4>.<u4|s4>.s32 (2r),(1r),(1r),(2r)
mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.<xor.popc|and.popc> (4r),(4r),(2r),(4r)
mma.sync.aligned.m8n8k4.<row|col>.<row|col>.f32.f16.f16.f32 (8f),(2r),(2r),(8f)
wmma.load.<a|b>.sync.aligned.<row|col>.<m16n16k16|m32n8k16|m8n32k16>{.global|.shared}.f16 (8r),A{,r}
wmma.load.c.sync.aligned.<row|col>.<m16n16k16|m32n8k16|m8n32k16>{.global|.shared}.f32 (8f),A{,r}
wmma.load.c.sync.aligned.<row|col>.<m16n16k16|m32n8k16|m8n32k16>{.global|.shared}.f16 (4r),A{,r}
wmma.load.a.sync.aligned.<row|col>.m16n16k16{.global|.shared}.bf16 (4r),A{,r}
wmma.load.a.sync.aligned.<row|col>.m16n16k8{.global|.shared}.tf32 (4r),A{,r}
wmma.load.a.sync.aligned.<row|col>.m16n16k16{.global|.shared}.<u8|s8> (2r),A{,r}
wmma.load.a.sync.aligned.<row|col>.m8n8k4{.global|.shared}.f64 (1F),A{,r}
wmma.store.d.sync.aligned.<row|col>.<m16n16k16|m32n8k16|m8n32k16>{.global|.shared}.f32 A,(8f){,r}
wmma.store.d.sync.aligned.<row|col>.m16n16k16{.global|.shared}.s32 A,(8r){,r}
wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.f32.f32 (8f),(8r),(8r),(8f)
wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.f16.f16 (4r),(8r),(8r),(4r)
wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.f32.bf16.bf16.f32 (8f),(4r),(4r),(8f)
wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k8.f32.tf32.tf32.f32 (8f),(4r),(4r),(8f)
wmma.mma.sync.aligned.<row|col>.<row|col>.m16n16k16.s32.<s8.s8|u8.u8>.s32{.satfinite} (8r),(2r),(2r),(8r)
wmma.mma.sync.aligned.<row|col>.<row|col>.m8n8k4{.rn}.f64.f64.f64.f64 (2F),(1F),(1F),(2F)
vabsdiff4.<u32|s32>.<u32|s32>.<u32|s32>{.sat|.add} r,r,r,r
vabsdiff2.<u32|s32>.<u32|s32>.<u32|s32>{.sat|.add} r,r,r,r
nanosleep.u32 r
setmaxnreg.<inc|dec>.sync.aligned.u32 i
trap
brkpt
exit
"""

# Known and refused: other instructions do their work in ordinary code.
NOT_DONE = """fma.rn.oob mov.b128 atom.global.cas.b128 redux.sync.min.f32 redux.sync.max.f32 u4 s4 b1 vabsdiff2
mma.m8n8k4.f16 vabsdiff4.sat""".split()

# Hints and the like may stand on any access to memory.
HINTS = {"L1::no_allocate", "L1::evict_last", "L1::evict_first", "L2::64B", "L2::128B", "L2::256B", "ca", "cg", "cs",
         "lu", "cv", "wb", "wt", "nc", "L2::cache_hint", "weak", "relaxed", "acquire", "release", "acq_rel",
         "volatile", "cta", "gpu", "sys", "cluster", "shared::cta", "shared::cluster", "global", "shared", "local",
         "const", "param", "mmio", "unified"}
HINTED = {"ld", "ldu", "st", "atom", "red", "cp", "prefetch", "fence", "membar", "mbarrier", "wmma", "ldmatrix",
          "stmatrix", "cvta", "isspacep"}
STRANGE = """v2 v4 noftz oob abs NaN sat cc ftz relu satfinite wide hi lo approx full rs async mmio trans uni xorsign
    rn rz rm rp rni rna multicast::cluster sp::ordered_metadata unified nosuch clamp wrap and popc shiftamt pred aligned
    sync row col read parity noinc s32 u32 f32 f64 f16 bf16 b32 b64 b16 u8 s64 x4 to global shared""".split()


def choices(text, at, closing):
    """All expansions of text[at:] up to the closing mark, and where it stands."""
    sequences = [""]
    while at < len(text) and text[at] not in closing:
        if text[at] in "{<":
            inner, end = alternatives(text, at + 1, "}" if text[at] == "{" else ">")
            inner = [""] + inner if text[at] == "{" else inner
            sequences = [s + i for s in sequences for i in inner]
            at = end + 1
        else:
            sequences = [s + text[at] for s in sequences]
            at += 1
    return sequences, at


def alternatives(text, at, closing):
    every = []
    while True:
        some, at = choices(text, at, "|" + closing)
        every += some
        if text[at] == closing:
            return every, at
        at += 1


def read_table():
    """(line number, opcode with modifiers, operands)"""
    for number, line in enumerate(FORMS.strip().splitlines()):
        name, _, operands = line.replace("@ORD", ORD).replace("@STO", STO).replace("@SEM", SEM).partition(" ")
        for form, shape in itertools.product(choices(name, 0, "")[0], choices(operands, 0, "")[0]):
            yield number, form, shape


REGISTERS = {"h": "%h", "r": "%r", "d": "%d", "f": "%f", "F": "%g", "p": "%p", "q": "%q"}


def operand(kind, number):
    if kind == "A":
        return "[%d9]"
    if kind == "S":
        return "[%r9]"
    if kind[0] == "i":
        return kind[1:] or "1"
    if kind[0] == "(":
        return "{" + ", ".join("%s%d" % (REGISTERS[kind[2]], 10 + i) for i in range(int(kind[1]))) + "}"
    if "|" in kind:
        return "|".join("%s%d" % (REGISTERS[k], number + i) for i, k in enumerate(kind.split("|")))
    return "%s%d" % (REGISTERS[kind], number)


def statement(form, operands):
    kinds = [k for k in operands.split(",") if k]
    return form + " " + ", ".join(operand(kind, i) for i, kind in enumerate(kinds)) + ";"


HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
BODY = (".visible .entry k%d() {\n.reg .b16 %%h<30>; .reg .b32 %%r<30>; .reg .b64 %%d<30>; .reg .f32 %%f<30>; "
        ".reg .f64 %%g<30>; .reg .pred %%p<30>; .reg .b128 %%q<9>;\n%s\nret;\n}\n")
PER_FILE = 700


def write_module(path, statements):
    with open(path, "w") as file:
        file.write(HEAD + "".join(BODY % (i, s) for i, s in enumerate(statements)))


def compiler_errors(statements):
    """What the C compiler says of the C of all, PER_FILE at a time."""
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(statements), PER_FILE):
            write_module(folder + "/forms.ptx", statements[start:start + PER_FILE])
            with open(folder + "/forms.c", "w") as file:
                subprocess.run([BUILD + "/device/translate", "--source", folder + "/forms.ptx"], stdout=file, check=True)
            done = subprocess.run(["cc", "-std=gnu17", "-fsyntax-only", "-w", "-Werror=implicit-function-declaration",
                                   folder + "/forms.c"], stderr=subprocess.PIPE, text=True)
            errors += [line for line in done.stderr.splitlines() if "error" in line]
    return errors


def translate(statements):
    """Why each is refused; "" where it is taken."""
    reasons = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(statements), PER_FILE):
            part, path = statements[start:start + PER_FILE], folder + "/forms.ptx"
            write_module(path, part)
            done = subprocess.run([BUILD + "/device/translate", path], stdout=subprocess.PIPE, text=True)
            rows = [line.split("\t") for line in done.stdout.splitlines()]
            if done.returncode or len(rows) != len(part) + 1:
                raise SystemExit("translate ended with %d: %s" % (done.returncode, rows[-1:]))
            reasons += [row[4] for row in rows[1:]]
    return reasons


def is_not_done(form):
    parts = form.split(".")
    return any(form.startswith(n) or set(n.split(".")) <= set(parts) for n in NOT_DONE)


def check(name, wrong):
    print("%s %s" % ("not ok" if wrong else "ok", name))
    for line in wrong[:int(os.environ.get("SHOW", "20"))]:
        print("    " + line, file=sys.stderr)
    return bool(wrong)


def strange_forms(table, legal, every):
    """A modifier more, where that is no form of the table: at the end and behind the opcode in turn."""
    seen, last = set(), None
    for i, (number, form, operands) in enumerate(table):
        is_first, is_last = number != last, i + 1 == len(table) or table[i + 1][0] != number
        last = number
        if not (every or is_first or is_last) or is_not_done(form):
            continue
        opcode, *modifiers = form.split(".")
        for k, word in enumerate(STRANGE):
            if opcode in HINTED and word in HINTS:
                continue
            changed = modifiers + [word] if k % 2 else [word] + modifiers
            key = (opcode, tuple(sorted(changed)))
            if key in legal or (key, operands) in seen:
                continue
            seen.add((key, operands))
            yield statement(".".join([opcode] + changed), operands)


def main():
    every, compiles = "--all" in sys.argv, "--compile" in sys.argv
    if not os.access(BUILD + "/device/translate", os.X_OK):
        print("skip forms: %s/device/translate is not built" % BUILD)
        return 0
    table = list(dict.fromkeys(read_table()))
    legal = {(f.split(".")[0], tuple(sorted(f.split(".")[1:]))) for _, f, _ in table}
    shapes = {(f, len([k for k in o.split(",") if k])) for _, f, o in table}
    failed = 0
    taken, missing, surprising = 0, [], []
    statements = [statement(f, o) for _, f, o in table]
    for (_, form, _), why in zip(table, translate(statements)):
        taken += not why
        if is_not_done(form) and not why:
            surprising.append("%s is taken, but listed as not done" % form)
        if not is_not_done(form) and why:
            missing.append("%s: %s" % (form, why))
    failed += check("forms: %d forms of the manual are taken" % taken, missing)
    failed += check("forms: what is not done is refused", surprising)
    if compiles:
        failed += check("forms: the C compiler takes what is written", compiler_errors(statements))
    strange = list(strange_forms(table, legal, every))
    failed += check("forms: %d with a modifier that does not belong there are refused" % len(strange),
                    [s + " is taken" for s, why in zip(strange, translate(strange)) if not why])
    crowded = [statement(f, o + ",r" if o else "r") for _, f, o in table
               if (f, len([k for k in o.split(",") if k]) + 1) not in shapes and not is_not_done(f)]
    failed += check("forms: %d with an operand too many are refused" % len(crowded),
                    [s + " is taken" for s, why in zip(crowded, translate(crowded)) if not why])
    short = [statement(f, o.rpartition(",")[0]) for _, f, o in table
             if o and (f, len(o.split(",")) - 1) not in shapes and not is_not_done(f)]
    failed += check("forms: %d with an operand too few are refused" % len(short),
                    [s + " is taken" for s, why in zip(short, translate(short)) if not why])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
