/** `ESC [`, or its one character; parameters; a letter. */
const control = String.raw`(?:\u001b\[|\u009b)[0-?]*[ -\/]*[@-~]`;

/** `ESC ]`, a text, and its end. */
const title = String.raw`\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)`;

/** The choice of a character set, and `ESC` with one other character. */
const short = String.raw`\u001b(?:[()#][\dA-Za-z]|[\dA-Z\\^_a-z=>])`;

/**
 * What terminals do not show. The work that is graded may print anything, so the time must be linear in the
 * length: no two adjacent parts match the same characters.
 */
const hidden = new RegExp(`${control}|${title}|${short}`, 'g');

/** The lines of what a program printed, without colours and without blanks around them. */
export function plainLines(output: string): string[] {
  return output
    .replace(hidden, '')
    .split(/\r\n|\n|\r/)
    .map((line) => line.trim());
}
