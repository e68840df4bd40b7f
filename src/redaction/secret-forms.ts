/** Characters below which a secret is not looked for: it would be found everywhere, and is none. */
const shortest = 6;

/**
 * The ways in which a secret's value shows up in what programs print: as it is, as JSON and URLs escape it, and inside base64, where
 * its letters depend on how many bytes stand before it. Longest first, so that a part never hides the whole.
 */
export function secretForms(secret: string): string[] {
  if (secret.length < shortest) return [];
  const forms = [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    // As forms write it.
    encodeURIComponent(secret).replaceAll('%20', '+'),
    ...base64Cores(Buffer.from(secret)),
    Buffer.from(secret).toString('hex'),
  ];
  return [...new Set(forms)].toSorted((a, b) => b.length - a.length);
}

/** For each of the three places that its first byte can have in a group of three: the letters that no neighbour can change. */
function base64Cores(secret: Buffer): string[] {
  const cores = [0, 1, 2].map((before) => {
    const letters = Buffer.concat([Buffer.alloc(before), secret]).toString('base64');
    // A letter carries 6 bits: the first ones share theirs with what stands before, the last one with what follows.
    const firstWhole = Math.ceil((before * 8) / 6);
    const endWhole = Math.floor(((before + secret.length) * 8) / 6);
    return letters.slice(firstWhole, endWhole);
  });
  const plain = cores.filter((core) => core.length >= shortest);
  return [...plain, ...plain.map((core) => core.replaceAll('+', '-').replaceAll('/', '_'))];
}
