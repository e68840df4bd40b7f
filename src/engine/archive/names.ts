/** Bytes of the longest path that a call of Linux takes, with the zero at its end. */
export const pathMax = 4096;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * A file's name as text; different names give different texts. Names on Linux are bytes: valid UTF-8 is kept
 * as it is, other bytes become `\xHH`. If a name itself contains that pattern, its backslash becomes `\x5c`.
 * So decoding every `\xHH` as a byte gives the name back.
 */
export function nameText(bytes: Buffer): string {
  const whole = decoded(bytes);
  if (whole !== undefined) return withoutPattern(whole);
  let text = '';
  let plain = '';
  for (let at = 0; at < bytes.length; ) {
    const character = characterAt(bytes, at);
    if (character === undefined) {
      text += `${withoutPattern(plain)}\\x${(bytes[at] ?? 0).toString(16).padStart(2, '0')}`;
      plain = '';
      at += 1;
    } else {
      plain += character;
      at += Buffer.byteLength(character);
    }
  }
  return text + withoutPattern(plain);
}

function withoutPattern(text: string): string {
  return text.replace(/\\(?=x[0-9a-f]{2})/g, '\\x5c');
}

/** The character that begins at `at`; undefined if none does. */
function characterAt(bytes: Buffer, at: number): string | undefined {
  const first = bytes[at] ?? 0;
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return decoded(bytes.subarray(at, at + length));
}

function decoded(bytes: Buffer): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
