/** Offsite's own marks, each with an ASCII one of the same width. */
const marks: Record<string, string> = {
  '✓': '+',
  '✗': 'x',
  '○': 'o',
  '│': '|',
  '…': '~',
  '·': '-',
  '–': '-',
  '×': 'x',
  '█': '=',
  '░': '.',
};

/** Offsite's own words for a terminal that shows ASCII only. */
export function ascii(own: string): string {
  return own.replace(/[^\p{ASCII}]/gu, (character) => marks[character] ?? '?');
}

/** Whether the terminal of a process shows UTF-8, by its locale. */
export function showsUtf8(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): boolean {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG;
  // macOS and Windows show UTF-8 whatever the environment says.
  if (locale === undefined || locale === '') return platform !== 'linux';
  return /utf-?8/i.test(locale);
}
