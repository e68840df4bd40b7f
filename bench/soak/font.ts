/**
 * A font of five by seven dots with two more below for tails, so that a chart needs no library. A row of dots is a digit of base 32,
 * its highest bit at the left; rows that are not there are empty.
 */
const rowsOf: Record<string, string> = {
  '0': 'ehjlphe',
  '1': '4c4444e',
  '2': 'eh1248v',
  '3': 'v2421he',
  '4': '26aiv22',
  '5': 'vgu11he',
  '6': '68guhhe',
  '7': 'v124888',
  '8': 'ehhehhe',
  '9': 'ehhf12c',
  a: '00e1fhf',
  b: 'ggmphhu',
  c: '00egghe',
  d: '11djhhf',
  e: '00ehvge',
  f: '698s888',
  g: '00fhhhf1e',
  h: 'ggmphhh',
  i: '40c444e',
  j: '2062222ic',
  k: 'ggikoki',
  l: 'c44444e',
  m: '00qllhh',
  n: '00mphhh',
  o: '00ehhhe',
  p: '00uhhhugg',
  q: '00fhhhf11',
  r: '00mpggg',
  s: '00fge1u',
  t: '88s8896',
  u: '00hhhjd',
  v: '00hhha4',
  w: '00hhlla',
  x: '00ha4ah',
  y: '00hhhhf1e',
  z: '00v248v',
  B: 'uhhuhhu',
  M: 'hrllhhh',
  ' ': '',
  '.': '00000cc',
  ',': '00000c48',
  ':': '0cc0cc',
  '-': '000e',
  '/': '01248g',
};

/** Dots from one character to the next. */
export const advance = 6;
/** Dots that a line's letters are high, tails left out. */
export const height = 7;

/** The dots of a text, from its upper left corner. Throws for a character that is not drawn here. */
export function* dotsOf(text: string): Generator<{ x: number; y: number }> {
  for (const [place, character] of [...text].entries()) {
    const rows = rowsOf[character];
    if (rows === undefined) throw new Error(`the font has no ${JSON.stringify(character)}`);
    for (const [y, row] of [...rows].entries()) {
      const bits = Number.parseInt(row, 32);
      for (let x = 0; x < 5; x++) if (bits & (16 >> x)) yield { x: place * advance + x, y };
    }
  }
}
