import { expect, test } from 'vitest';
import { lockText } from '../../scripts/python-locks/lock-text.ts';

test('a lock names what all processors have once, and says which processor has the rest', () => {
  const x86_64 = ['a==1', 'b==2', 'b-core==3', 'c==4'];
  const aarch64 = ['a==1', 'b==1', 'b-core==3'];
  expect(lockText('some-cli', { x86_64, aarch64 })).toBe(`# Written by: node scripts/lock-python.ts some-cli
a==1
b==2 ; platform_machine == 'x86_64'
b==1 ; platform_machine == 'aarch64'
b-core==3
c==4 ; platform_machine == 'x86_64'
`);
});
