/** What a case asks and how it is graded: the hash of each part that it has, by the part's name. */
export type Definition = Readonly<Record<string, string>>;

/**
 * The cases that ask or check something else on the two sides, by id, with the parts that differ. Verdicts of
 * such a case are about different things, so they are not compared. Undefined if a side does not tell its
 * definitions.
 */
export function changedParts(
  a: Readonly<Record<string, Definition>> | undefined,
  b: Readonly<Record<string, Definition>> | undefined,
): Record<string, string[]> | undefined {
  if (a === undefined || b === undefined) return undefined;
  const changed = Object.entries(a).flatMap(([id, before]): [string, string[]][] => {
    const after = Object.hasOwn(b, id) ? b[id] : undefined;
    if (after === undefined) return [];
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    const parts = names.filter((name) => before[name] !== after[name]);
    return parts.length === 0 ? [] : [[id, parts]];
  });
  return Object.fromEntries(changed);
}
