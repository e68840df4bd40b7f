/**
 * The users of a grading sandbox. Neither is root. Neither may signal, trace or read the other's processes.
 * Only the work's user may write to the workspace. The ids are lower than 65,536, because rootless engines
 * map no others.
 */
export const users = {
  /** Runs the validator. It owns only a folder for temporary files. */
  validator: { uid: 64_201, gid: 64_201 },
  /** Runs what the agent left: `nobody`. Every Linux has a name for this id, which some programs require. */
  work: { uid: 65_534, gid: 65_534 },
} as const;

/** The user in the form that an engine takes. */
export function execUser({ uid, gid }: { uid: number; gid: number }): string {
  return `${uid}:${gid}`;
}
