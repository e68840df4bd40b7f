import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** `tester` has no rights. */
export type MachineUser = 'root' | 'tester';

/** How to log in to a virtual machine with ssh. */
export interface MachineLogin {
  /** Arguments of `ssh` that run a line of shell there. */
  running(user: MachineUser, script: string): string[];
  /** A folder with an `ssh` that has the users' key and knows the machine. */
  programs: string;
}

/**
 * Writes into `folder` what a login to the machine at `address` needs. The machine's root has the keys of
 * both sides.
 */
export async function machineLogin(folder: string, root: string, address: string): Promise<MachineLogin> {
  const at = (name: string) => join(folder, name);
  await copyFile(join(root, 'home/tester/.ssh/id'), at('key'));
  await chmod(at('key'), 0o600);
  const hostKey = await readFile(join(root, 'etc/ssh/ssh_host_ed25519_key.pub'), 'utf8');
  await writeFile(at('known'), `${address} ${hostKey}`);
  const settings = { IdentityFile: at('key'), IdentitiesOnly: 'yes', UserKnownHostsFile: at('known') };
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
  await writeFile(at('client'), lines.join(''));
  await mkdir(at('bin'));
  await writeFile(at('bin/ssh'), `#!/bin/sh\nexec /usr/bin/ssh -F ${at('client')} "$@"\n`, { mode: 0o755 });
  const options = ['-F', at('client'), '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=60'];
  return { running: (user, script) => [...options, `${user}@${address}`, script], programs: at('bin') };
}
