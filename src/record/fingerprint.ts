/**
 * What a trial asked, how it was graded, and what worked on it: each part that it has, by its name. The value
 * is a hash of the part, or its name and version where people know it by these.
 */
export type Fingerprint = Record<string, string>;

/** The parts that belong to the variant. All others belong to the case. */
const ofVariant: ReadonlySet<string> = new Set([
  'model',
  'modelId',
  'modelAddress',
  'harness',
  'profile',
  'sandbox',
]);

/**
 * The parts that say what stood behind the name of a model. A trial lacks them if nothing asked the model,
 * and if an older Offsite ran it: then they are not known, which is no difference.
 */
export function isBehindName(part: string): boolean {
  return /^(modelId$|modelAddress$|judge |user )/.test(part);
}

/** The fingerprint of trials of a case on a variant that have a verdict. */
export interface KnownFingerprint {
  caseId: string;
  variant: string;
  parts: Fingerprint;
}

export interface ChangedPart {
  part: string;
  /** The values on the two sides; empty text for trials without the part. */
  a: string[];
  b: string[];
}

export interface FingerprintChanges {
  /**
   * The cases whose trials do not all ask and check the same, by id, with the parts that differ. Verdicts of
   * such a case are about different things, so they are not compared.
   */
  cases: Record<string, string[]>;
  /** What differs between the variants. */
  variant: ChangedPart[];
  /** What stood behind names of models on one side, and is not known of the other. */
  unknown: string[];
}

/**
 * What differs between the trials of two sides, each of one variant. Undefined if no case has trials with a
 * fingerprint on both sides: results of an older Offsite, or of a service, have none.
 *
 * @param names of the sides
 */
export function fingerprintChanges(
  a: readonly KnownFingerprint[],
  b: readonly KnownFingerprint[],
  names: readonly [a: string, b: string] = ['A', 'B'],
): FingerprintChanges | undefined {
  const [ofA, ofB] = [a, b].map((side) => Map.groupBy(side, ({ caseId }) => caseId));
  const common = [...(ofA ?? [])].flatMap(([id, before]) => {
    const after = ofB?.get(id);
    return after ? [{ id, ...partsOf(before, after) }] : [];
  });
  if (common.length === 0) return undefined;
  const cases = common.flatMap(({ id, changed }): [string, string[]][] => {
    const ofCase = changed.filter(({ part }) => !ofVariant.has(part));
    const parts = ofCase.map((one) => `${nameOf(one.part)}${withinOne(one, names)}`);
    return parts.length === 0 ? [] : [[id, parts]];
  });
  const changed = common.flatMap((one) => one.changed).filter(({ part }) => ofVariant.has(part));
  const variant = [...Map.groupBy(changed, ({ part }) => part)].map(([part, all]) => {
    const values = (side: 'a' | 'b') => [...new Set(all.flatMap((one) => one[side]))];
    return { part, a: values('a'), b: values('b') };
  });
  const unknown = [...new Set(common.flatMap((one) => one.unknown))];
  return { cases: Object.fromEntries(cases), variant, unknown };
}

/** ` within A`, if the one value of the other side is among its values. */
function withinOne({ a, b }: ChangedPart, [nameOfA, nameOfB]: readonly [string, string]): string {
  if (a.length > 1 && b.length === 1 && b.every((value) => a.includes(value))) return ` within ${nameOfA}`;
  return b.length > 1 && a.length === 1 && a.every((value) => b.includes(value)) ? ` within ${nameOfB}` : '';
}

/** The parts with other values on the two sides, or with several on one side; and those known of only one. */
function partsOf(a: readonly KnownFingerprint[], b: readonly KnownFingerprint[]) {
  const names = new Set([...a, ...b].flatMap(({ parts }) => Object.keys(parts)));
  const valuesOf = (side: readonly KnownFingerprint[], part: string) => {
    const values = new Set(side.map(({ parts }) => (Object.hasOwn(parts, part) ? (parts[part] ?? '') : '')));
    if (isBehindName(part)) values.delete('');
    return [...values];
  };
  const changed: ChangedPart[] = [];
  const unknown: string[] = [];
  for (const part of names) {
    const [before, after] = [valuesOf(a, part), valuesOf(b, part)];
    if (before.length === 0 || after.length === 0) unknown.push(part);
    else if (before.length > 1 || after.length > 1 || before[0] !== after[0])
      changed.push({ part, a: before, b: after });
  }
  return { changed, unknown };
}

/**
 * What differs between trials of one variant in one batch, a line for each variant: a batch can be resumed
 * with another model, script or version behind the same name. Images have harnesses of different versions,
 * so all but the model is compared within a case.
 *
 * @param isMeant the parts to look at
 */
export function mixedTexts(
  known: readonly KnownFingerprint[],
  isMeant: (part: string) => boolean = () => true,
): string[] {
  return [...Map.groupBy(known, ({ variant }) => variant)].flatMap(([variant, all]) => {
    const { cases = {}, variant: ofVariant = [] } = fingerprintChanges(all, all) ?? {};
    const valuesOf = (part: string) => new Set(all.flatMap(({ parts }) => parts[part] ?? []));
    const ofModel = ['modelId', 'modelAddress'].filter((part) => valuesOf(part).size > 1);
    const changed = [...Object.values(cases).flat(), ...ofVariant.map(({ part }) => part), ...ofModel];
    const parts = new Set(changed.filter(isMeant));
    if (parts.size === 0) return [];
    return [`not all trials of ${variant} had the same ${[...parts].map(nameOf).join(', ')}`];
  });
}

/** `harness (codex 0.41.0 → codex 0.42.0), profile`: what differs in the variant. Empty if nothing does. */
export function variantChangesText(changes: readonly ChangedPart[]): string {
  return changes
    .map(({ part, a, b }) =>
      isNamed.has(part) ? `${part} (${a.join(', ')} → ${b.join(', ')})` : nameOf(part),
    )
    .join(', ');
}

/** Parts that people know by another name than that of the request. */
const names: ReadonlyMap<string, string> = new Map([
  ['modelAddress', 'address or script of the model'],
  // Checks and judges of a case are validations, too.
  ['validator', 'validations'],
]);

function nameOf(part: string): string {
  return names.get(part) ?? part;
}

/** The parts whose values people know. The others are hashes. */
const isNamed: ReadonlySet<string> = new Set(['model', 'modelId', 'harness']);

/** What is not known of one side; undefined if all is. */
export function unknownPartsText(parts: readonly string[]): string | undefined {
  const names = [...new Set(parts.map((part) => (part.startsWith('model') ? 'the model' : part)))];
  if (names.length === 0) return undefined;
  return `Not known for one side, so it may differ: what answered for ${names.join(', ')}.`;
}
