import { randomBytes, randomInt } from 'node:crypto';
import { execa } from 'execa';

/** A network bridge for an engine of its own, whose containers reach what this machine reaches. */
export interface Bridge extends AsyncDisposable {
  name: string;
}

/**
 * The addresses are RFC 2544's, which no network uses. The engine itself is told to leave the firewall alone:
 * it would empty the chains of the machine's engine. So the few rules that it needs are made here.
 */
export async function addBridge(): Promise<Bridge> {
  const name = `offsite${randomBytes(4).toString('hex')}`;
  const net = `198.18.${randomInt(1, 255)}`;
  await execa('ip', ['link', 'add', name, 'type', 'bridge']);
  await execa('ip', ['address', 'add', `${net}.1/24`, 'dev', name]);
  await execa('ip', ['link', 'set', name, 'up']);
  const rules = [
    ['nat', 'POSTROUTING', '-s', `${net}.0/24`, '!', '-o', name, '-j', 'MASQUERADE'],
    ['filter', 'FORWARD', '-i', name, '-j', 'ACCEPT'],
    ['filter', 'FORWARD', '-o', name, '-j', 'ACCEPT'],
  ] as const;
  const change = async (how: '-I' | '-D') => {
    for (const [table, ...rule] of rules)
      await execa('iptables', ['-w', '-t', table, how, ...rule], { reject: false }); // few machines have none
  };
  await change('-I');
  return {
    name,
    async [Symbol.asyncDispose]() {
      await change('-D');
      await execa('ip', ['link', 'delete', name], { reject: false });
    },
  };
}
