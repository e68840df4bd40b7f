/**
 * Whether a user, as an engine takes one (name or id, a group after a colon), is root, as it is where none is
 * named.
 */
export function isRoot(user: string | undefined): boolean {
  const name = user?.split(':')[0];
  return name === undefined || name === '' || name === 'root' || Number(name) === 0;
}
