/** The verdicts of a case's trials. Void trials say nothing about the case: they are counted and left out. */
export interface CaseVerdicts {
  /** Names the case on both sides of a comparison. */
  id: string;
  passed: number;
  failed: number;
  void: number;
}

/** One measured number for each scored trial of a case. */
export interface CaseValues {
  /** Names the case on both sides of a comparison. */
  id: string;
  values: readonly number[];
}

/** The cases of two sides, by name. */
export interface Paired<Case> {
  pairs: { id: string; a: Case; b: Case }[];
  /** Cases that only one side has, or that have no usable trial on the other side. */
  onlyA: string[];
  onlyB: string[];
}

export function scoredTrials({ passed, failed }: CaseVerdicts): number {
  return passed + failed;
}

/** From 0 to 1; the case needs a scored trial. */
export function caseRate({ passed, failed }: CaseVerdicts): number {
  return passed / (passed + failed);
}

/** Pairs the cases that both sides have, in the order of the first. Unusable cases count as absent. */
export function pairCases<Case extends { id: string }>(
  a: readonly Case[],
  b: readonly Case[],
  isUsable: (one: Case) => boolean,
): Paired<Case> {
  const byId = new Map(b.filter(isUsable).map((one) => [one.id, one]));
  const usable = a.filter(isUsable);
  const pairs = usable.flatMap((one) => {
    const other = byId.get(one.id);
    return other ? [{ id: one.id, a: one, b: other }] : [];
  });
  const paired = new Set(pairs.map(({ id }) => id));
  return {
    pairs,
    onlyA: usable.map(({ id }) => id).filter((id) => !paired.has(id)),
    onlyB: [...byId.keys()].filter((id) => !paired.has(id)),
  };
}

/** The mean; NaN if there are no values. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
