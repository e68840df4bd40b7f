import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import { type SshServer, sshServer } from './ssh-server.ts';

let server: SshServer;
beforeAll(async () => {
  server = await sshServer();
});
afterAll(() => server?.[Symbol.asyncDispose]());

/** Expects that a connection fails, and that the message and its hint say these things. */
async function expectFailure(host: string, why: string, hint: RegExp): Promise<void> {
  await expect(connectEngine({ host, env: server.env, instance: 'test-ssh-failures' })).rejects.toMatchObject(
    {
      code: 'ENGINE_UNREACHABLE',
      kind: 'infrastructure',
      message: expect.stringContaining(why),
      hint: expect.stringMatching(hint),
    },
  );
}

test('a machine without an engine, or a user who may not use it, is told what to run there', async () => {
  const hint = /Run `ssh -p \d+ \w+@127\.0\.0\.1 docker version`.*group docker/;
  await expectFailure(`${server.host}/no/such.sock`, "cannot open the engine's socket /no/such.sock", hint);
  await expectFailure(`${server.host}/no/podman.sock`, 'socket /no/podman.sock', /--now podman\.socket/);
  const nobody = server.host.replace('root@', 'nobody@');
  await expectFailure(nobody, "cannot open the engine's socket /var/run/docker.sock", hint);
});

test('a host that does not exist, or has no ssh server, is named', async () => {
  await expectFailure('ssh://no-such-host.invalid', 'no host is called no-such-host.invalid', /~\/\.ssh/);
  await expectFailure(
    'ssh://root@127.0.0.1:1',
    'no ssh server answers',
    /`ssh -p 1 root@127\.0\.0\.1` works/,
  );
});

test('a server that asks for a password is not asked: the user learns how to add a key', async () => {
  await expectFailure(server.host.replace('root@', 'stranger@'), 'rejected your keys', /ssh-copy-id -p \d+/);
});

test('an unknown host key and a changed one are told apart, and each says how to accept it', async () => {
  const port = new URL(server.host).port;
  const another = `[127.0.0.1]:${port} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n`;
  await writeFile(server.knownHosts, another);
  await expectFailure(
    server.host,
    'has a different key from the one',
    /ssh-keygen -R '\[127\.0\.0\.1\]:\d+'/,
  );
  await writeFile(server.knownHosts, '');
  await expectFailure(server.host, 'does not know the key', /once and accept the key/);
});
