//! From a policy to classic BPF, as a binary search over ranges of numbers.

use super::{ArgumentTest, SeccompPolicy, SeccompRule};

/// One BPF instruction, as the kernel takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The operation, in the encoding of classic BPF.
    pub code: u16,
    /// Instructions to skip when a jump's condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// The operand: a constant, an offset or a distance.
    pub k: u32,
}

/// A filter, compiled to classic BPF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeccompProgram {
    instructions: Vec<Instruction>,
}

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP_IF_BITS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const KEEP_BITS: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE_ARCHITECTURE: u32 = 0xc000_00b7;

/// x32 system calls have this bit; the kernel would take them as 64-bit ones with other layouts.
pub(super) const FIRST_FOREIGN_NUMBER: u32 = 0x4000_0000;

impl SeccompProgram {
    /// Compiles a policy; the same policy always gives the same program.
    pub fn compile(policy: &SeccompPolicy) -> Self {
        let mut instructions = vec![
            load(ARCHITECTURE_AT),
            jump_if(JUMP_IF_EQUAL, NATIVE_ARCHITECTURE, 1, 0),
            give(libc::SECCOMP_RET_KILL_PROCESS),
            load(NUMBER_AT),
            jump_if(JUMP_IF_AT_LEAST, FIRST_FOREIGN_NUMBER, 0, 1),
            give(libc::SECCOMP_RET_KILL_PROCESS),
        ];
        instructions.extend(search(&ranges(policy)));
        Self { instructions }
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }
}

/// Runs of neighbouring numbers that share a rule, as `(first number, rule)`.
fn ranges(policy: &SeccompPolicy) -> Vec<(u32, SeccompRule)> {
    let last = policy.rules().last().map_or(0, |(number, _)| number);
    let mut ranges: Vec<(u32, SeccompRule)> = Vec::new();
    for number in 0..=last + 1 {
        let rule = policy.rule(number);
        if ranges.last().is_none_or(|(_, previous)| *previous != rule) {
            ranges.push((number, rule));
        }
    }
    ranges
}

fn search(ranges: &[(u32, SeccompRule)]) -> Vec<Instruction> {
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (Some((pivot, _)), false) = (high.first(), low.is_empty()) else {
        return high.first().map_or_else(Vec::new, |(_, rule)| leaf(*rule));
    };
    let (low, high) = (search(low), search(high));
    let mut code = match u8::try_from(low.len()) {
        Ok(skip) => vec![jump_if(JUMP_IF_AT_LEAST, *pivot, skip, 0)],
        // Conditional jumps reach 255 instructions; further needs an unconditional one.
        Err(_) => {
            let skip = u32::try_from(low.len()).unwrap_or(u32::MAX);
            let jump = Instruction { code: JUMP, jt: 0, jf: 0, k: skip };
            vec![jump_if(JUMP_IF_AT_LEAST, *pivot, 0, 1), jump]
        }
    };
    code.extend(low);
    code.extend(high);
    code
}

fn leaf(rule: SeccompRule) -> Vec<Instruction> {
    let allow = give(libc::SECCOMP_RET_ALLOW);
    match rule {
        SeccompRule::Allow => vec![allow],
        SeccompRule::Refuse(errno) => vec![refuse(errno)],
        SeccompRule::AllowIf(tests) => {
            let tests = tests.iter().flat_map(|(argument, test)| check(*argument, *test));
            tests.chain([allow]).collect()
        }
    }
}

/// Falls through to what follows if the argument passes its test.
fn check(argument: u8, test: ArgumentTest) -> Vec<Instruction> {
    // Little-endian: the low half of a 64-bit argument comes first.
    let mut code = vec![load(ARGUMENTS_AT + 8 * u32::from(argument))];
    match test {
        ArgumentTest::NoneOf(bits) => code.push(jump_if(JUMP_IF_BITS, bits, 0, 1)),
        ArgumentTest::NotAllOf(bits) => {
            code.push(Instruction { code: KEEP_BITS, jt: 0, jf: 0, k: bits });
            code.push(jump_if(JUMP_IF_EQUAL, bits, 0, 1));
        }
        ArgumentTest::OneOf(values) => {
            let count = u8::try_from(values.len()).unwrap_or(u8::MAX);
            // On a hit skip the remaining comparisons and the refusal.
            let hits = (1..=count).rev().zip(values);
            code.extend(hits.map(|(skip, value)| jump_if(JUMP_IF_EQUAL, *value, skip, 0)));
        }
    }
    code.push(refuse(libc::EPERM as u16));
    code
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD_WORD, jt: 0, jf: 0, k: offset }
}

fn jump_if(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

fn give(action: u32) -> Instruction {
    Instruction { code: RETURN, jt: 0, jf: 0, k: action }
}

fn refuse(errno: u16) -> Instruction {
    give(libc::SECCOMP_RET_ERRNO | u32::from(errno))
}
