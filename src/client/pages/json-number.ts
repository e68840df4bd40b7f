/** The part of a number that was read last. */
export type NumberState = 'minus' | 'zero' | 'digits' | 'point' | 'fraction' | 'e' | 'sign' | 'exponent';

/** The state of a number after its first byte; undefined if no number begins with it. */
export function firstOf(byte: number): NumberState | undefined {
  if (byte === 0x2d) return 'minus';
  if (!isDigit(byte)) return undefined;
  return byte === zero ? 'zero' : 'digits';
}

/** The state of a number after one more byte; undefined if the byte is not part of it. */
export function nextOf(state: NumberState, byte: number): NumberState | undefined {
  switch (String.fromCharCode(byte)) {
    case '.':
      return state === 'zero' || state === 'digits' ? 'point' : undefined;
    case 'e':
    case 'E':
      return state === 'zero' || state === 'digits' || state === 'fraction' ? 'e' : undefined;
    case '+':
    case '-':
      return state === 'e' ? 'sign' : undefined;
    default:
      return isDigit(byte) ? afterDigit(state, byte) : undefined;
  }
}

/** Whether a number may end here. */
export function isWhole(state: NumberState): boolean {
  return state === 'zero' || state === 'digits' || state === 'fraction' || state === 'exponent';
}

const zero = 0x30;

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= 0x39;
}

function afterDigit(state: NumberState, byte: number): NumberState | undefined {
  switch (state) {
    case 'minus':
      return firstOf(byte);
    case 'zero':
      return undefined;
    case 'point':
      return 'fraction';
    case 'e':
    case 'sign':
      return 'exponent';
    default:
      return state;
  }
}
