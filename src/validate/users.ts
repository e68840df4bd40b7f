/**
 * Who runs in a grading sandbox. Neither is root, neither may signal, trace or read the other's processes,
 * and only the work's user may write to the workspace. The numbers are below what engines without root map
 * (65,536).
 */
export const users = {
  /** Runs the validator. It owns nothing but a folder for temporary files. */
  validator: { uid: 64_201, gid: 64_201 },
  /** Runs what the agent left: `nobody`, whom every Linux has under a name, which some programs ask for. */
  work: { uid: 65_534, gid: 65_534 },
} as const;

/** As an engine is told of a user. */
export function execUser({ uid, gid }: { uid: number; gid: number }): string {
  return `${uid}:${gid}`;
}
