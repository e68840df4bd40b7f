/** In characters. A shorter beginning could be anything. */
const fewest = 12;
/**
 * How many characters after a key's label reveal too much. Fewer are shown on purpose, to tell keys apart.
 */
const fewestOwn = 8;

/**
 * The label that every key of a kind begins with (`sk-ant-api03-`, `github_pat_`): words with a few digits,
 * each ended by a dash or an underscore. If a whole key consists of such words, its label ends after the last
 * one.
 */
const label = /^(?:[A-Za-z]{1,12}\d{0,3}[-_])+/;

/**
 * The shortest beginning of a secret that reveals too much of it, so that it counts as the secret: half of
 * the secret, at least 12 characters, 8 of them after the label. A shorter secret counts only as a whole.
 */
export function beginningOf(value: string): string {
  const characters = [...value];
  const named = label.exec(value)?.[0].length ?? 0;
  return characters.slice(0, Math.max(fewest, Math.ceil(characters.length / 2), named + fewestOwn)).join('');
}
