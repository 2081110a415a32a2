"""Floating point by exact fractions: the oracle for the expected values in tests/ptx/*.ptx.

A format is (mantissa bits without the leading one, exponent bits). Values are bit patterns. No hardware float is used."""
from fractions import Fraction
from math import isqrt

F16, BF16, F32, F64 = (10, 5), (7, 8), (23, 8), (52, 11)
NAN = "nan"


def width(fmt):
    return 1 + fmt[0] + fmt[1]


def parts(fmt, bits):
    m, e = fmt
    return bits >> (m + e) & 1, bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)


def is_nan(fmt, bits):
    sign, exponent, mantissa = parts(fmt, bits)
    return exponent == (1 << fmt[1]) - 1 and mantissa != 0


def is_inf(fmt, bits):
    sign, exponent, mantissa = parts(fmt, bits)
    return exponent == (1 << fmt[1]) - 1 and mantissa == 0


def is_zero(fmt, bits):
    return bits & ~(1 << (width(fmt) - 1)) == 0


def sign_of(fmt, bits):
    return bits >> (width(fmt) - 1)


def value(fmt, bits):
    sign, exponent, mantissa = parts(fmt, bits)
    bias = (1 << (fmt[1] - 1)) - 1
    if exponent == 0:
        magnitude = Fraction(mantissa) * Fraction(2) ** (1 - bias - fmt[0])
    else:
        magnitude = Fraction(mantissa + (1 << fmt[0])) * Fraction(2) ** (exponent - bias - fmt[0])
    return -magnitude if sign else magnitude


def inf(fmt, sign):
    return sign << (width(fmt) - 1) | ((1 << fmt[1]) - 1) << fmt[0]


def zero(fmt, sign):
    return sign << (width(fmt) - 1)


def round_integer(x, mode):
    """x >= 0 to an integer; mode 'rn' to even, 'down', 'up'."""
    floor = x.numerator // x.denominator
    rest = x - floor
    if mode == "down" or rest == 0:
        return floor
    if mode == "up":
        return floor + 1
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor & 1):
        return floor + 1
    return floor


def direction(mode, sign):
    return {"rn": "rn", "rz": "down", "rm": "up" if sign else "down", "rp": "down" if sign else "up"}[mode]


def encode(fmt, x, mode="rn", zero_sign=0):
    if x == 0:
        return zero(fmt, zero_sign)
    m, e = fmt
    bias = (1 << (e - 1)) - 1
    sign = 1 if x < 0 else 0
    x = abs(x)
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > x:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    quantum = Fraction(2) ** (exponent - m)
    steps = round_integer(x / quantum, direction(mode, sign))
    if steps >= 2 << m:
        steps, exponent = steps // 2, exponent + 1
    if exponent > bias:
        largest = inf(fmt, sign) - 1
        return inf(fmt, sign) if direction(mode, sign) in ("rn", "up") else largest
    if steps < 1 << m:
        return sign << (m + e) | steps
    return sign << (m + e) | (exponent + bias) << m | (steps - (1 << m))


def flush(fmt, bits):
    if bits == NAN:
        return bits
    sign, exponent, mantissa = parts(fmt, bits)
    return zero(fmt, sign) if exponent == 0 else bits


def add(fmt, a, b, mode="rn"):
    if is_nan(fmt, a) or is_nan(fmt, b):
        return NAN
    if is_inf(fmt, a) or is_inf(fmt, b):
        if is_inf(fmt, a) and is_inf(fmt, b) and a != b:
            return NAN
        return a if is_inf(fmt, a) else b
    total = value(fmt, a) + value(fmt, b)
    if is_zero(fmt, a) and is_zero(fmt, b) and sign_of(fmt, a) == sign_of(fmt, b):
        return a
    return encode(fmt, total, mode, 1 if mode == "rm" else 0)


def negate(fmt, a):
    return a ^ 1 << (width(fmt) - 1)


def mul(fmt, a, b, mode="rn"):
    if is_nan(fmt, a) or is_nan(fmt, b):
        return NAN
    sign = sign_of(fmt, a) ^ sign_of(fmt, b)
    if is_inf(fmt, a) or is_inf(fmt, b):
        return NAN if is_zero(fmt, a) or is_zero(fmt, b) else inf(fmt, sign)
    return encode(fmt, value(fmt, a) * value(fmt, b), mode, sign)


def fma(fmt, a, b, c, mode="rn"):
    if is_nan(fmt, a) or is_nan(fmt, b) or is_nan(fmt, c):
        return NAN
    sign = sign_of(fmt, a) ^ sign_of(fmt, b)
    if is_inf(fmt, a) or is_inf(fmt, b):
        if is_zero(fmt, a) or is_zero(fmt, b) or (is_inf(fmt, c) and sign_of(fmt, c) != sign):
            return NAN
        return inf(fmt, sign)
    if is_inf(fmt, c):
        return c
    product = value(fmt, a) * value(fmt, b)
    if product == 0 and is_zero(fmt, c) and sign == sign_of(fmt, c):
        return zero(fmt, sign)
    return encode(fmt, product + value(fmt, c), mode, 1 if mode == "rm" else 0)


def div(fmt, a, b, mode="rn"):
    if is_nan(fmt, a) or is_nan(fmt, b):
        return NAN
    sign = sign_of(fmt, a) ^ sign_of(fmt, b)
    if is_inf(fmt, a):
        return NAN if is_inf(fmt, b) else inf(fmt, sign)
    if is_inf(fmt, b):
        return zero(fmt, sign)
    if is_zero(fmt, b):
        return NAN if is_zero(fmt, a) else inf(fmt, sign)
    return encode(fmt, value(fmt, a) / value(fmt, b), mode, sign)


def sqrt(fmt, a, mode="rn"):
    if is_nan(fmt, a):
        return NAN
    if is_zero(fmt, a):
        return a
    if sign_of(fmt, a):
        return NAN
    if is_inf(fmt, a):
        return a
    x = value(fmt, a)
    scale = 4 ** (fmt[0] + 20 + (1 << fmt[1]))
    root = isqrt(x.numerator * scale // x.denominator)
    exact = Fraction(root) ** 2 == x * scale
    approximate = Fraction(root * 2 + (0 if exact else 1), 2 * isqrt(scale))
    return encode(fmt, approximate, mode)


def convert(to, fmt, a, mode="rn"):
    if is_nan(fmt, a):
        return NAN
    if is_inf(fmt, a):
        return inf(to, sign_of(fmt, a))
    return encode(to, value(fmt, a), mode, sign_of(fmt, a))


def to_integer(fmt, a, bits, signed, mode):
    """mode: rni, rzi, rmi, rpi. Out of range goes to the nearest bound; NaN to 0, or to 2^63 for 64 bits."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if is_nan(fmt, a):
        return 1 << 63 if bits == 64 else 0
    if is_inf(fmt, a):
        return low if sign_of(fmt, a) else high
    x = value(fmt, a)
    sign = 1 if x < 0 else 0
    magnitude = round_integer(abs(x), direction(mode[:2], sign))
    return max(low, min(high, -magnitude if sign else magnitude))


def to_integral(fmt, a, mode):
    if is_nan(fmt, a) or is_inf(fmt, a):
        return NAN if is_nan(fmt, a) else a
    x = value(fmt, a)
    sign = sign_of(fmt, a)
    magnitude = round_integer(abs(x), direction(mode[:2], sign))
    return encode(fmt, Fraction(-magnitude if sign else magnitude), "rn", sign)


def less(fmt, a, b):
    if is_inf(fmt, a) or is_inf(fmt, b):
        key = lambda v: (-1 if sign_of(fmt, v) else 1) if is_inf(fmt, v) else 0
        return key(a) < key(b) if key(a) != key(b) else False
    return value(fmt, a) < value(fmt, b)


def minimum(fmt, a, b, largest=False, keeps_nan=False):
    if is_nan(fmt, a) or is_nan(fmt, b):
        if keeps_nan or (is_nan(fmt, a) and is_nan(fmt, b)):
            return NAN
        return b if is_nan(fmt, a) else a
    if is_zero(fmt, a) and is_zero(fmt, b):
        return zero(fmt, (sign_of(fmt, a) & sign_of(fmt, b)) if largest else (sign_of(fmt, a) | sign_of(fmt, b)))
    return (b if less(fmt, a, b) else a) if largest else (a if less(fmt, a, b) else b)
