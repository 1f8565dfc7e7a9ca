//! D8: a doubt comes before anything else.

use std::time::Duration;

use belljar_contract::ErrorCode;
use belljar_wire::ToolFault;
use tokio::time::timeout;

use super::Doubts;

fn fault(message: &str) -> ToolFault {
    ToolFault::new(ErrorCode::ToolInDoubt, message)
}

async fn are_over(doubts: &Doubts) -> bool {
    timeout(Duration::from_millis(20), doubts.are_over()).await.is_ok()
}

#[tokio::test]
async fn d8_calls_leave_when_the_last_doubt_is_decided() {
    assert!(are_over(&Doubts::new(0)).await);
    let doubts = Doubts::new(2);
    assert_eq!(doubts.close(None), None);
    assert!(!are_over(&doubts).await);
    assert_eq!(doubts.close(None), None);
    assert!(are_over(&doubts).await);
}

#[tokio::test]
async fn d8_nothing_leaves_while_a_person_has_to_decide_and_all_doubts_are_told_at_once() {
    let doubts = Doubts::new(3);
    assert_eq!(doubts.close(Some(fault("a"))), None);
    assert_eq!(doubts.close(Some(fault("b"))), None);
    let stop = doubts.close(None).expect("two are undecided");
    assert_eq!(stop.message, "a; so are 1 more calls: see `belljar approvals`");
    assert!(!are_over(&doubts).await);
}
