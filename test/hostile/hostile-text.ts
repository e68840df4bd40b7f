/** What somebody may send as a name, a message or a line of output to reach whoever reads it. */
export const attacks = {
  csi: '\u001b[2J\u001b[1;1H\u001b[31mcleared',
  osc52: '\u001b]52;c;cm0gLXJmIH4=\u0007',
  c1: '\u009b2J\u009d52;c;eA==\u009c',
  overwrite: 'failed\r✓ passed\b\b\v\f',
  nul: 'a\u0000b\u007f',
  bidi: '\u202egnp.exe\u202c \u2066x\u2069 \u061c',
  invisible: 'zero\u200b\u2060\ufeff\u00adwidth\u3164\u{e0041}\ufe0f',
  separators: 'one\u2028two\u2029three\u0085four',
  surrogate: 'half \ud800 of one',
  stop: '::stop-commands::x',
  lineStop: 'fine\n::stop-commands::x\n  ::add-mask::a\n::error file=a.ts,line=1::forged',
  v1: "see ##[error]forged and ##vso[task.setvariable variable=a]b ##teamcity[testFailed name='x']",
  lineV1: 'fine\n##[group]forged\n##teamcity[buildStop]\n--- forged\n+++ forged',
  marks: `\u0301\u0301${'z\u0335'.repeat(3)}e${'\u0301'.repeat(500)}`,
} as const;

/** All of it in one text. */
export const hostileText = Object.values(attacks).join(' | ');

/** Something of each kind for names, which have at most 200 characters, are well-formed and have no NUL. */
export const hostileName = [
  attacks.csi,
  attacks.osc52,
  attacks.c1,
  attacks.overwrite,
  attacks.bidi,
  attacks.invisible,
  attacks.separators,
  '\n::stop-commands::x',
  '\n##vso[a b=c]d',
  '\n--- f',
  attacks.marks.slice(0, 10),
].join('|');

/**
 * The problems in a command's output: none, if no foreign text had an effect. `own` are lines that Offsite
 * prints on purpose.
 */
export function harmIn(printed: string, own: RegExp = /^(?!)/): string[] {
  const harm: string[] = [];
  const hidden = /[[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\n\t]]/v;
  for (const line of printed.split('\n')) {
    if (hidden.test(line)) harm.push(`steers or hides: ${JSON.stringify(line.slice(0, 300))}`);
    if (own.test(line)) continue;
    if (/^\s*(::|##|---? |\+\+\+ |~~~ |\^\^\^ )/.test(line)) harm.push(`begins: ${line.slice(0, 300)}`);
    if (/##[^\s#]*\[/.test(line)) harm.push(`holds a message: ${line.slice(0, 300)}`);
    // A document for programs has each value whole.
    if (line.length > 60_000 && !/^\s*["[{]/.test(line)) harm.push(`has ${line.length} characters`);
  }
  return harm;
}
