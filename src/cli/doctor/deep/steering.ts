/** Characters that control a terminal or change the direction of its text, except line breaks and tabs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const steering = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

export function steers(text: string): boolean {
  return steering.test(text);
}
