/** `ESC [`, or its one character; parameters; a letter. */
const control = String.raw`(?:\u001b\[|\u009b)[0-?]*[ -\/]*[@-~]`;

/** `ESC ]`, a text, and its end. */
const title = String.raw`\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)`;

/** A character set, and all that is one letter after `ESC`. */
const short = String.raw`\u001b(?:[()#][\dA-Za-z]|[\dA-Z\\^_a-z=>])`;

/**
 * What terminals do not show. The work that is graded may print anything, so the time must grow with the
 * length alone: no two parts that follow each other match the same characters.
 */
const hidden = new RegExp(`${control}|${title}|${short}`, 'g');

/** The lines of what a program printed, without colours and without blanks around them. */
export function plainLines(output: string): string[] {
  return output
    .replace(hidden, '')
    .split(/\r\n|\n|\r/)
    .map((line) => line.trim());
}
