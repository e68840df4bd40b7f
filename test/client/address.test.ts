import { expect, test } from 'vitest';
import { parseAddress } from '../../src/client/address.ts';

test('operations live below the base address, with or without a slash at its end', () => {
  expect(parseAddress('https://evals.example', false).pathOf('auth.whoami')).toBe('/v1/auth.whoami');
  expect(parseAddress('https://evals.example/api//', false).pathOf('auth.whoami')).toBe(
    '/api/v1/auth.whoami',
  );
});

for (const url of [
  '',
  'evals.example',
  'localhost:4600',
  'ftp://evals.example',
  'https://',
  'unix:/run/x.sock',
  'https://evals.example/v1/',
]) {
  test(`${url || 'an empty text'} is refused as an address`, () => {
    expect(() => parseAddress(url, true)).toThrow(
      expect.objectContaining({ code: 'CLIENT_URL_INVALID', kind: 'input' }),
    );
  });
}

for (const url of [
  'https://user:hunter2@evals.example',
  'https://evals.example?key=hunter2',
  'https://evals.example#hunter2',
]) {
  test(`an address that carries more than a place is refused and not shown: ${new URL(url).host}`, () => {
    expect(() => parseAddress(url, false)).toThrow(expect.objectContaining({ code: 'CLIENT_URL_INVALID' }));
    expect(() => parseAddress(url, false)).not.toThrow('hunter2');
  });
}

for (const url of [
  'http://127.0.0.1:4600',
  'http://127.1',
  'http://localhost:1',
  'http://[::1]:1',
  'http://LOCALHOST',
]) {
  test(`plain http to this machine is fine: ${url}`, () => {
    expect(parseAddress(url, false)).toMatchObject({ loopback: true });
  });
}

for (const url of [
  'http://evals.example',
  'http://10.0.0.1',
  'http://localhost.evals.example',
  'http://127.0.0.1.evals.example',
  'http://0.0.0.0',
]) {
  test(`plain http to ${url} needs the flag, which the error names`, () => {
    const parse = () => parseAddress(url, false);
    expect(parse).toThrow(
      expect.objectContaining({
        code: 'CLIENT_INSECURE_HTTP',
        hint: expect.stringContaining('service.insecureHttp'),
      }),
    );
    expect(parseAddress(url, true)).toMatchObject({ loopback: false });
  });
}
