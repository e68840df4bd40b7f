/** Characters that steer a terminal or turn its text around; lines and tabs do neither. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const steering = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

export function steers(text: string): boolean {
  return steering.test(text);
}
