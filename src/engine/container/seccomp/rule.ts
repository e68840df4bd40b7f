/** One condition on an argument of a call, which the kernel compares as 64 bits without a sign. */
export interface Condition {
  index: number;
  op: 'SCMP_CMP_EQ' | 'SCMP_CMP_NE' | 'SCMP_CMP_GT' | 'SCMP_CMP_MASKED_EQ';
  value: number;
  /** Of `SCMP_CMP_MASKED_EQ`: what the argument is, where `value` has its bits set. */
  valueTwo?: number;
}

/**
 * What becomes of some calls where all conditions hold, in the engine's own form. Rules of one call must not
 * overlap.
 */
export interface Rule {
  names: readonly string[];
  action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO';
  args?: Condition[];
  /** The number of the error that the caller sees. */
  errnoRet?: number;
}

/** Numbers of errors, the same on all of Linux that we know. */
export const errors = { EPERM: 1, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const;

export function allow(names: readonly string[], ...args: Condition[]): Rule {
  return { names, action: 'SCMP_ACT_ALLOW', ...(args.length > 0 && { args }) };
}

export function refuse(error: keyof typeof errors, names: readonly string[], ...args: Condition[]): Rule {
  return { names, action: 'SCMP_ACT_ERRNO', errnoRet: errors[error], ...(args.length > 0 && { args }) };
}

export function equals(index: number, value: number): Condition {
  return { index, op: 'SCMP_CMP_EQ', value };
}

/** Of the bits in `mask`, the argument has set just those that `value` has. */
export function masked(index: number, mask: number, value: number): Condition {
  return { index, op: 'SCMP_CMP_MASKED_EQ', value: mask, valueTwo: value };
}
