/** Characters below which a beginning could be anything. */
const fewest = 12;
/** Characters after a key's label: fewer are shown on purpose, to tell keys apart. */
const fewestOwn = 8;

/**
 * What every key of its kind begins with (`sk-ant-api03-`, `github_pat_`): words with a few digits, each
 * ended by a dash or an underscore. A key that is made of such words is taken for a label up to its last one.
 */
const label = /^(?:[A-Za-z]{1,12}\d{0,3}[-_])+/;

/**
 * The beginning of a secret that tells too much of it, so that all from there on counts as the secret: half
 * of it, no fewer than 12 characters, 8 of which come after its label. The whole of a secret that is shorter.
 */
export function beginningOf(value: string): string {
  const characters = [...value];
  const named = label.exec(value)?.[0].length ?? 0;
  return characters.slice(0, Math.max(fewest, Math.ceil(characters.length / 2), named + fewestOwn)).join('');
}
