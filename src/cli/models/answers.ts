/** What is wrong with the address of a model's API; undefined if nothing is. */
export function checkAddress(given: string): string | undefined {
  const url = URL.parse(given);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    return 'expected an address such as http://127.0.0.1:8000/v1';
  // The message does not repeat the address, which may contain a key.
  if (url.username || url.password || url.search || url.hash)
    return 'expected an address without a user, a query and a fragment: the key goes into a variable';
  return undefined;
}

/** What is wrong with a variable's name, without repeating it: it may be a key. Undefined if nothing is. */
export function checkVariable(given: string): string | undefined {
  if (/^[A-Za-z_]\w*$/.test(given)) return undefined;
  return 'expected the name of an environment variable such as MY_API_KEY, never the key itself';
}
