/**
 * Whether a link below a folder leads to something in that folder, judged by the target's text alone. A
 * target may begin with `..`, since the folder that holds the link is not itself a link. After that it may
 * not have `..`: after another link, that could lead anywhere.
 *
 * @param root the folder's absolute path
 * @param path the link's path, relative to `root`
 */
export function leadsInside(root: string, path: string, target: string): boolean {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  if (target.startsWith('/')) {
    const isBelow = `/${parts.join('/')}/`.startsWith(`${root}/`);
    return isBelow && !parts.includes('..');
  }
  const names = parts.findIndex((part) => part !== '..');
  const ups = names === -1 ? parts.length : names;
  const depth = path.split('/').length - 1;
  return path !== '' && ups <= depth && !parts.slice(ups).includes('..');
}
