/** One condition on an argument of a call, which the kernel compares as 64 bits without a sign. */
export interface Condition {
  index: number;
  op: 'SCMP_CMP_EQ' | 'SCMP_CMP_NE' | 'SCMP_CMP_GT' | 'SCMP_CMP_MASKED_EQ';
  value: number;
  /** For `SCMP_CMP_MASKED_EQ`: the required value of those bits that are set in `value`. */
  valueTwo?: number;
}

/**
 * What happens to some calls if all conditions hold, in the engine's form. Rules for the same call must not
 * overlap.
 */
export interface Rule {
  names: readonly string[];
  action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO';
  args?: Condition[];
  /** The number of the error that the caller sees. */
  errnoRet?: number;
}

/** Error numbers, the same on all Linux architectures that Offsite supports. */
export const errors = {
  EPERM: 1,
  ENOSYS: 38,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
} as const;

export function allow(names: readonly string[], ...args: Condition[]): Rule {
  return { names, action: 'SCMP_ACT_ALLOW', ...(args.length > 0 && { args }) };
}

export function refuse(error: keyof typeof errors, names: readonly string[], ...args: Condition[]): Rule {
  return { names, action: 'SCMP_ACT_ERRNO', errnoRet: errors[error], ...(args.length > 0 && { args }) };
}

export function equals(index: number, value: number): Condition {
  return { index, op: 'SCMP_CMP_EQ', value };
}

/** Holds if the argument's bits under `mask` equal those of `value`. */
export function masked(index: number, mask: number, value: number): Condition {
  return { index, op: 'SCMP_CMP_MASKED_EQ', value: mask, valueTwo: value };
}
