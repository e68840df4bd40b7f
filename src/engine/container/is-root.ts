/**
 * Whether a user is root. `user` is in the engine's form: name or id, a group after a colon. No user means
 * root.
 */
export function isRoot(user: string | undefined): boolean {
  const name = user?.split(':')[0];
  return name === undefined || name === '' || name === 'root' || Number(name) === 0;
}
